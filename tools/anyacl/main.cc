// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// anyacl: what the library is, what it can do, how fast it does it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "commands.h"
#include "library.h"

namespace anyacl::tool {
namespace {

constexpr int kUsage = 2;

void AddInfo(CLI::App& app) {
  CLI::App* const info =
      app.add_subcommand("info", "Version, devices, SIMD target, threads, environment");
  info->callback(Info);
}

void AddOps(CLI::App& app, OpsOptions& options) {
  CLI::App* const ops = app.add_subcommand("ops", "Operators and their contracts");
  ops->add_option("name", options.name, "Only this operator, in full");
  CLI::Option* const markdown = ops->add_flag("--markdown", options.markdown, "As Markdown");
  ops->add_flag("--json", options.json, "As JSON")->excludes(markdown);
  ops->add_option("--out", options.out, "Write one page per operator and an index into this folder")
      ->type_name("DIR")
      ->needs(markdown);
  ops->callback([&options] { Ops(options); });
}

void AddBench(CLI::App& app, BenchOptions& options) {
  CLI::App* const bench =
      app.add_subcommand("bench", "Time of operators beside what the memory allows");
  bench->add_option("--op", options.op, "Only this operator")->type_name("NAME");
  bench->add_option("--case", options.row, "Only the case of this name, else those that contain it")
      ->type_name("TEXT");
  bench->add_option("--dtype", options.type, "Only this dtype: FLOAT, BF16, FLOAT16->DOUBLE ...")
      ->type_name("T");
  bench->add_option("--threads", options.threads, "Threads of the CPU pool")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  bench->add_option("--backend", options.backend, "Backend of the devices")->type_name("B");
  bench->add_option("--json", options.json, "Write the rows into this file (-: standard output)")
      ->type_name("FILE");
  bench->add_option("--svg", options.svg, "Draw them into this file")->type_name("FILE");
  bench->callback([&options] { Bench(options); });
}

struct RunOptions {
  int ranks = 0;  // 0: not as ranks
  int status = 0;
};

void AddVerifyReport(CLI::App& app, VerifyReportOptions& options) {
  CLI::App* const report = app.add_subcommand("verify-report", "The log of ANYACL_VERIFY as an HTML page");
  report->add_option("log", options.log, "What ANYACL_VERIFY wrote")->type_name("LOG")->required();
  report->add_option("--out", options.out, "The page; default: LOG.html")->type_name("FILE");
  report->callback([&options] { VerifyReport(options); });
}

struct TraceOptions {
  std::string file;
  std::string out = "-";
  int timeout = 120;  // seconds
};

void AddTrace(CLI::App& app, TraceOptions& options) {
  CLI::App* const trace = app.add_subcommand("trace", "What a program called: the file of ANYACL_TRACE");
  trace->require_subcommand(1);
  CLI::App* const show = trace->add_subcommand("show", "As text");
  show->add_option("file", options.file, "The trace")->required()->type_name("FILE");
  show->callback([&options] { ShowTrace(options.file); });
  CLI::App* const timeline = trace->add_subcommand("json", "As a timeline for Perfetto (ui.perfetto.dev)");
  timeline->add_option("file", options.file, "The trace")->required()->type_name("FILE");
  timeline->add_option("--out", options.out, "Write it into this file (-: standard output)")->type_name("FILE");
  timeline->callback([&options] { TraceToJson(options.file, options.out); });
}

void AddReplay(CLI::App& app, TraceOptions& options, int& status) {
  CLI::App* const replay = app.add_subcommand("replay", "The calls of a trace again; status 1 when they come to something else");
  replay->add_option("file", options.file, "The trace")->required()->type_name("FILE");
  replay->add_option("--timeout", options.timeout, "Give up when no call has returned for so long; 120 seconds unless set")
      ->type_name("SECONDS")
      ->check(CLI::Range(1, 1000000));
  replay->callback([&] { status = ReplayTrace(options.file, options.timeout); });
}

void AddNeeds(CLI::App& app, NeedsOptions& options, int& status) {
  CLI::App* const needs =
      app.add_subcommand("needs", "Which functions programs and libraries use; status 1 when one is missing here");
  needs->add_option("files", options.files, "Programs, libraries, extensions of Python")->required()->type_name("FILE");
  needs->add_flag("--all", options.all, "List what is provided, too");
  needs->add_flag("--linked", options.linked, "Leave out what is only named in strings");
  needs->callback([&] { status = Needs(options); });
}

void AddExplain(CLI::App& app, ExplainOptions& options) {
  CLI::App* const explain = app.add_subcommand("explain", "What a status code means and what helps");
  explain->add_option("codes", options.words, "Codes or their names; with --last the file of a trace")->type_name("CODE");
  explain->add_flag("--last", options.last, "The last failed call of a trace, by default that of ANYACL_TRACE");
  explain->callback([&options] { ExplainCode(options); });
}

// Everything from the first word that is no option of ours is the program's, its own options included. CLI11 would eat
// the first "--" and complain of what follows, so `rest` holds what stood behind it, with or without the program.
void AddRun(CLI::App& app, const std::vector<std::string>& rest, bool has_dashes, RunOptions& options) {
  CLI::App* const run = app.add_subcommand(
      "run", "A program in the environment of this installation: run -- PROGRAM ARGS");
  run->add_option("-n", options.ranks,
                  "As N ranks that find each other by RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  run->prefix_command();
  run->callback([run, &rest, has_dashes, &options] {
    std::vector<std::string> command = run->remaining();
    if (has_dashes && !command.empty()) command.push_back("--");
    command.insert(command.end(), rest.begin(), rest.end());
    options.status = RunProgram(command, options.ranks);
  });
}

// CLI11 would only say that a command is missing.
void RequireKnownCommand(const CLI::App& app, const std::string& word) {
  if (word.empty() || word[0] == '-') return;
  const auto is_word = [&](const CLI::App* command) { return command->get_name() == word; };
  if (!app.get_subcommands(is_word).empty()) return;
  throw UserError(fmt::format("there is no command {}; known: info, ops, bench, run, trace, replay, needs, explain, verify-report", word));
}

int Run(int argc, char** argv) {
  CLI::App app("AnyACL: AscendCL and aclnn operators on any machine", "anyacl");
  OpsOptions ops;
  BenchOptions bench;
  RunOptions run;
  VerifyReportOptions report;
  app.set_version_flag("--version", fmt::format("AnyACL {}", Library().version));
  app.require_subcommand(1);
  AddInfo(app);
  AddOps(app, ops);
  AddBench(app, bench);
  AddVerifyReport(app, report);
  TraceOptions trace;
  NeedsOptions needs;
  ExplainOptions explain;
  int status = 0;
  AddTrace(app, trace);
  AddReplay(app, trace, status);
  AddNeeds(app, needs, status);
  AddExplain(app, explain);
  const auto is_dashes = [](const char* word) { return std::strcmp(word, "--") == 0; };
  char** const end = argv + argc;
  char** const dashes =
      argc > 1 && std::strcmp(argv[1], "run") == 0 ? std::find_if(argv, end, is_dashes) : end;
  const std::vector<std::string> rest(dashes == end ? end : dashes + 1, end);
  argc = static_cast<int>(dashes - argv);
  AddRun(app, rest, dashes != end, run);
  try {
    RequireKnownCommand(app, argc > 1 ? argv[1] : "");
    app.parse(argc, argv);  // runs the command
    return run.status ? run.status : status;
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : kUsage;  // --help and --version come this way too
  } catch (const UserError& e) {
    fmt::print(stderr, "anyacl: {}\n", e.what());
    return kUsage;
  } catch (const std::exception& e) {
    if (std::ferror(stdout)) return 1;  // Main says it
    fmt::print(stderr, "anyacl: {}\n", e.what());
    return 1;
  }
}

// A full disk shows only now.
int Main(int argc, char** argv) {
  const int result = Run(argc, argv);
  std::cout.flush();  // where CLI11 writes
  if (std::cout && std::fflush(stdout) == 0 && !std::ferror(stdout)) return result;
  fmt::print(stderr, "anyacl: the output cannot be written\n");
  return result ? result : 1;
}

}  // namespace
}  // namespace anyacl::tool

int main(int argc, char** argv) { return anyacl::tool::Main(argc, argv); }
