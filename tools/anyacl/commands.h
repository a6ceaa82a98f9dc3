// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_TOOLS_COMMANDS_H_
#define ANYACL_TOOLS_COMMANDS_H_

#include <string>
#include <vector>

namespace anyacl::tool {

void Info();

struct OpsOptions {
  std::string name;  // empty: all
  bool markdown = false;
  bool json = false;
  std::string out;  // folder for one page per operator and their index
};
void Ops(const OpsOptions& options);

struct BenchOptions {
  std::string op;    // empty: all
  std::string row;   // empty: all; else the cases whose name contains it, or is it
  std::string type;  // empty: those marked for the bench
  int threads = 0;   // 0: as the library has it
  std::string backend;
  std::string json;  // file, "-" for standard output
  std::string svg;   // likewise
};
void Bench(const BenchOptions& options);

// A trace as text on standard output.
void ShowTrace(const std::string& path);
// As a timeline; "-" is standard output.
void TraceToJson(const std::string& path, const std::string& out);
// Makes the calls of a trace again. The exit status: 0 when they came to the same. Ends the process when no call returns for
// `patience_s` seconds.
int ReplayTrace(const std::string& path, int patience_s);

struct NeedsOptions {
  std::vector<std::string> files;
  bool all = false;     // list what is provided, too
  bool linked = false;  // leave out what is only named in strings
};
// The exit status: 0 when nothing is missing.
int Needs(const NeedsOptions& options);

struct ExplainOptions {
  std::vector<std::string> words;  // codes or their names, or with `last` the file of a trace
  bool last = false;
};
void ExplainCode(const ExplainOptions& options);

struct VerifyReportOptions {
  std::string log;
  std::string out;  // empty: LOG.html
};
void VerifyReport(const VerifyReportOptions& options);

// A program in the environment of this installation. `ranks` 0: becomes it, and returns only by an exception. Else that many
// processes that find each other; returns the status.
int RunProgram(const std::vector<std::string>& command, int ranks);

}  // namespace anyacl::tool

#endif  // ANYACL_TOOLS_COMMANDS_H_
