// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// anyacl trace: a trace as text, and as a timeline for Perfetto or chrome://tracing.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "commands.h"
#include "library.h"
#include "trace_file.h"

namespace anyacl::tool {
namespace {

using nlohmann::json;

constexpr int kHost = 1;  // process numbers of the timeline
constexpr int kStreams = 2;

std::string CommandOf(const Trace& trace) {
  std::string command(trace.header.command, sizeof(trace.header.command));
  command.resize(command.find_last_not_of('\0') + 1);
  std::replace(command.begin(), command.end(), '\0', ' ');
  return command;
}

std::map<uint32_t, int> NumberThreads(const Trace& trace) {
  std::map<uint32_t, int> numbers;
  for (const TracedCall& call : trace.calls) numbers.emplace(call.thread, static_cast<int>(numbers.size()) + 1);
  return numbers;
}

void ShowCall(const TracedCall& call, int thread, int64_t start, Naming& naming) {
  const std::string arguments = naming.Arguments(call);
  naming.Learn(call);
  const std::string took =
      call.returned ? fmt::format("  ({:.1f} us)", static_cast<double>(call.end - call.begin) * 1e-3) : "";
  fmt::print("{:12.6f}  {}  {}({}) = {}{}\n", static_cast<double>(call.begin - start) * 1e-9, thread, call.function->name,
             arguments, naming.Results(call), took);
  if (!call.error.empty()) fmt::print("{:17}error: {}\n", "", call.error);
  if (!call.python_file.empty()) fmt::print("{:17}from {}:{}\n", "", call.python_file, call.python_line);
}

// --- the timeline ---

double Microseconds(int64_t time, int64_t start) { return static_cast<double>(time - start) * 1e-3; }

json Metadata(const char* what, int process, int64_t thread, const std::string& name) {
  return {{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

json Span(const std::string& name, const char* category, int process, int64_t thread, double begin, double duration) {
  return {{"ph", "X"},       {"name", name},  {"cat", category},                      {"pid", process},
          {"tid", thread},   {"ts", begin},   {"dur", std::max(duration, 0.001)},     {"args", json::object()}};
}

json CallEvent(const TracedCall& call, int64_t start, Naming& naming) {
  const int64_t end = call.returned ? call.end : call.begin;
  const char* const category = call.failed() ? "failed" : "call";
  json event = Span(call.function->name, category, kHost, call.thread, Microseconds(call.begin, start),
                    Microseconds(end, call.begin));
  event["args"]["arguments"] = naming.Arguments(call);
  naming.Learn(call);
  event["args"]["result"] = naming.Results(call);
  if (!call.error.empty()) event["args"]["error"] = call.error;
  if (!call.python_file.empty()) event["args"]["python"] = fmt::format("{}:{}", call.python_file, call.python_line);
  return event;
}

json WorkEvent(const TracedWork& work, int64_t start) {
  json event = Span(work.label, "work", kStreams, work.stream, Microseconds(work.begin, start),
                    Microseconds(work.end, work.begin));
  event["args"]["bytes"] = work.bytes;
  if (work.code != 0) event["args"]["code"] = work.code;
  return event;
}

// Bytes per second of all streams together, wherever that changes.
void AddCounters(const Trace& trace, int64_t start, json* events) {
  std::multimap<int64_t, double> changes;
  for (const TracedWork& work : trace.work) {
    if (work.bytes == 0 || work.end <= work.begin) continue;
    const double rate = static_cast<double>(work.bytes) / static_cast<double>(work.end - work.begin);  // GB/s
    changes.emplace(work.begin, rate);
    changes.emplace(work.end, -rate);
  }
  double rate = 0;
  for (auto change = changes.begin(); change != changes.end();) {
    const int64_t time = change->first;
    for (; change != changes.end() && change->first == time; ++change) rate += change->second;
    events->push_back({{"ph", "C"}, {"name", "memory"}, {"pid", kStreams}, {"tid", 0}, {"ts", Microseconds(time, start)},
                       {"args", {{"GB/s", std::max(rate, 0.0)}}}});
  }
}

}  // namespace

void ShowTrace(const std::string& path) {
  const Trace trace = ReadTrace(path);
  fmt::print("# {} ({}), AnyACL {}, process {}\n", path, CommandOf(trace), trace.header.version, trace.header.process);
  fmt::print("# seconds, thread, call\n");
  const std::map<uint32_t, int> threads = NumberThreads(trace);
  Naming naming;
  for (const TracedCall& call : trace.calls) {
    ShowCall(call, threads.at(call.thread), trace.header.steady_time, naming);
  }
  const auto failed = std::count_if(trace.calls.begin(), trace.calls.end(), [](const TracedCall& c) { return c.failed(); });
  fmt::print("# {} calls of {} threads, {} failed\n", trace.calls.size(), threads.size(), failed);
}

void TraceToJson(const std::string& path, const std::string& out) {
  const Trace trace = ReadTrace(path);
  const int64_t start = trace.header.steady_time;
  json events = json::array();
  events.push_back(Metadata("process_name", kHost, 0, fmt::format("{} ({})", CommandOf(trace), trace.header.process)));
  events.push_back(Metadata("process_name", kStreams, 0, "streams"));
  for (const auto& [thread, facts] : trace.threads) {
    events.push_back(Metadata("thread_name", kHost, thread, facts.name));
  }
  std::set<uint32_t> streams;
  for (const TracedWork& work : trace.work) streams.insert(work.stream);
  for (const uint32_t stream : streams) {
    events.push_back(Metadata("thread_name", kStreams, stream, fmt::format("stream {}", stream)));
  }
  Naming naming;
  for (const TracedCall& call : trace.calls) events.push_back(CallEvent(call, start, naming));
  for (const TracedWork& work : trace.work) events.push_back(WorkEvent(work, start));
  AddCounters(trace, start, &events);
  const json whole = {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ns"}};
  const std::string text = whole.dump(-1, ' ', false, json::error_handler_t::replace);
  if (out == "-") {
    fmt::print("{}\n", text);
    return;
  }
  std::ofstream file(out);
  file << text << '\n';
  file.close();
  if (!file) throw UserError(fmt::format("{} cannot be written", out));
}

}  // namespace anyacl::tool
