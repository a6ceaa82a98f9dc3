// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "trace_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>
#include <unordered_map>

#include "core/dtype.h"
#include "core/handle_table.h"
#include "library.h"

namespace anyacl::tool {
namespace {

using trace::Element;
using trace::Kind;
using trace::Value;

constexpr size_t kMostShown = 16;  // elements of an array

// Takes a record apart; throws when it ends too early.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  T Take() {
    T value;
    const std::string_view bytes = TakeBytes(sizeof(T));
    std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }
  std::string_view TakeBytes(uint64_t size) {
    if (size > rest_.size()) throw UserError("the trace is damaged: a record is shorter than it says");
    const std::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }
  std::string TakeText() { return std::string(TakeBytes(Take<uint16_t>())); }
  Traced TakeValue();

 private:
  std::string_view rest_;
};

Traced Reader::TakeValue() {
  Traced value;
  value.kind = Take<Value>();
  switch (value.kind) {
    case Value::kNothing:
    case Value::kNull:
      break;
    case Value::kInteger:
      value.integer = Take<int64_t>();
      break;
    case Value::kReal:
      value.real = Take<double>();
      break;
    case Value::kText:
      value.bytes = TakeBytes(Take<uint32_t>());
      break;
    case Value::kPointer:
    case Value::kPlace:
    case Value::kFunction:
    case Value::kDigest:
      value.address = Take<uint64_t>();
      break;
    case Value::kPointers: {
      value.address = Take<uint64_t>();
      const auto count = Take<uint32_t>();
      for (uint32_t i = 0; i < count; ++i) value.pointers.push_back(Take<uint64_t>());
      break;
    }
    case Value::kArray:
      value.address = Take<uint64_t>();
      value.element = Take<Element>();
      value.element_size = std::max<uint32_t>(1, Take<uint8_t>());
      value.bytes = TakeBytes(uint64_t{value.element_size} * Take<uint32_t>());
      break;
    case Value::kBytes:
      value.address = Take<uint64_t>();
      value.bytes = TakeBytes(Take<uint32_t>());
      break;
    case Value::kContents:
      value.address = Take<uint64_t>();
      value.bytes = TakeBytes(Take<uint64_t>());
      break;
    default:
      throw UserError("the trace is damaged: a value has no kind that is known");
  }
  return value;
}

TracedFunction TakeFunction(Reader& reader) {
  TracedFunction function;
  function.name = reader.TakeText();
  function.result = reader.TakeText();
  function.is_status = reader.Take<uint8_t>() != 0;
  const auto params = reader.Take<uint8_t>();
  for (int i = 0; i < params; ++i) {
    std::string name = reader.TakeText();
    function.params.push_back({std::move(name), reader.TakeText()});
  }
  return function;
}

// Calls each(kind, record, thread) for every record of the file.
template <class Each>
void ForEachRecord(std::string_view file, Trace* trace, Each&& each) {
  for (uint64_t at = trace::kPage; at + sizeof(trace::ChunkHeader) <= file.size();) {
    trace::ChunkHeader chunk;
    std::memcpy(&chunk, file.data() + at, sizeof(chunk));
    if (chunk.magic != trace::kChunkMagic) break;  // it was being made when the program ended
    trace->threads[chunk.thread] = {std::string(chunk.name, strnlen(chunk.name, sizeof(chunk.name))), chunk.handle};
    Reader records(file.substr(at + sizeof(chunk), std::min(chunk.used, chunk.bytes) - sizeof(chunk)));
    for (uint64_t left = chunk.used - sizeof(chunk); left > sizeof(uint32_t);) {
      const auto size = records.Take<uint32_t>();
      Reader record(records.TakeBytes(size));
      left -= sizeof(size) + size;
      each(record.Take<Kind>(), record, chunk.thread);
    }
    at += chunk.bytes;
  }
}

void TakeReturn(Reader& reader, TracedCall* call) {
  call->returned = true;
  call->return_ticket = reader.Take<uint64_t>();
  call->end = reader.Take<int64_t>();
  const auto outputs = reader.Take<uint8_t>();
  for (int i = 0; i < outputs; ++i) {
    const auto param = reader.Take<uint8_t>();
    call->after[param] = reader.TakeValue();
  }
  call->result = reader.TakeValue();
  call->error = reader.TakeText();
  call->python_file = reader.TakeText();
  call->python_line = reader.Take<int32_t>();
}

std::string ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UserError(fmt::format("{} cannot be read", path));
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// What the four top bits of a handle say.
const char* KindOfHandle(uint64_t value) {
  switch (static_cast<HandleKind>(value >> 60)) {
    case HandleKind::kTensor:
      return "tensor";
    case HandleKind::kScalar:
      return "scalar";
    case HandleKind::kIntArray:
    case HandleKind::kFloatArray:
    case HandleKind::kBoolArray:
      return "array";
    case HandleKind::kTensorList:
    case HandleKind::kScalarList:
      return "list";
    case HandleKind::kExecutor:
      return "executor";
    case HandleKind::kContext:
      return "context";
    case HandleKind::kStream:
      return "stream";
    case HandleKind::kEvent:
      return "event";
    case HandleKind::kGraph:
      return "graph";
    case HandleKind::kDataBuffer:
      return "buffer";
    case HandleKind::kTensorDesc:
      return "desc";
    case HandleKind::kPhysicalMemory:
      return "physical";
  }
  return nullptr;
}

std::string ListText(const Traced* values) {
  if (!values || values->kind != Value::kArray) return "null";
  std::vector<std::string> words;
  for (size_t i = 0; i < std::min(values->elements(), kMostShown); ++i) words.push_back(values->ElementText(i));
  if (values->elements() > kMostShown) words.push_back(fmt::format("... {} in all", values->elements()));
  return fmt::format("[{}]", fmt::join(words, ", "));
}

// A value of the type that a scalar is made of.
std::string ScalarText(const TracedCall& call) {
  const auto dtype = static_cast<DType>(call.args[1].integer);
  const auto as = [&](auto zero) {
    std::memcpy(&zero, call.args[0].bytes.data(), std::min(sizeof(zero), call.args[0].bytes.size()));
    return fmt::format("{}", zero);
  };
  std::string text = "?";
  if (dtype == DType::kF32) text = as(0.0F);
  if (dtype == DType::kF64) text = as(0.0);
  if (dtype == DType::kI64) text = as(int64_t{0});
  if (dtype == DType::kI32) text = as(int32_t{0});
  if (dtype == DType::kBool) text = as(false);
  return fmt::format("{} {}", Name(dtype), text);
}

}  // namespace

int64_t Traced::Integer(size_t n) const {
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.data() + n * element_size, std::min<size_t>(element_size, sizeof(bits)));
  const unsigned unused = 64 - 8 * std::min<unsigned>(element_size, 8);
  return element == Element::kUnsigned ? static_cast<int64_t>(bits) : static_cast<int64_t>(bits << unused) >> unused;
}

std::string Traced::ElementText(size_t n) const {
  if (element != Element::kReal) return std::to_string(Integer(n));
  if (element_size == sizeof(float)) {
    float value;
    std::memcpy(&value, bytes.data() + n * sizeof(value), sizeof(value));
    return fmt::format("{}", value);
  }
  double value = 0;
  std::memcpy(&value, bytes.data() + n * element_size, std::min<size_t>(sizeof(value), element_size));
  return fmt::format("{}", value);
}

int TracedFunction::Find(const std::string& param) const {
  const auto found = std::find_if(params.begin(), params.end(), [&](const Param& p) { return p.name == param; });
  return found == params.end() ? -1 : static_cast<int>(found - params.begin());
}

const Traced* TracedCall::Arg(const std::string& param) const {
  const int i = function->Find(param);
  return i < 0 ? nullptr : &args[i];
}

const Traced* TracedCall::After(const std::string& param) const {
  const auto found = after.find(static_cast<size_t>(function->Find(param)));
  return found == after.end() ? nullptr : &found->second;
}

Trace ReadTrace(const std::string& path) {
  const std::string file = ReadWhole(path);
  Trace trace;
  if (file.size() < trace::kPage && file.size() < sizeof(trace.header)) throw UserError(path + " is no trace of AnyACL");
  std::memcpy(&trace.header, file.data(), sizeof(trace.header));
  if (std::memcmp(trace.header.magic, trace::kMagic, sizeof(trace::kMagic)) != 0) {
    throw UserError(path + " is no trace of AnyACL");
  }
  ForEachRecord(file, &trace, [&](Kind kind, Reader& record, uint32_t) {
    if (kind != Kind::kFunction) return;
    const auto number = record.Take<uint16_t>();
    trace.functions[number] = TakeFunction(record);
  });
  std::unordered_map<uint64_t, size_t> of_ticket;
  ForEachRecord(file, &trace, [&](Kind kind, Reader& record, uint32_t thread) {
    if (kind == Kind::kWork) {
      const auto stream = record.Take<uint32_t>();
      std::string label = record.TakeText();
      const auto bytes = record.Take<uint64_t>();
      const auto begin = record.Take<int64_t>();
      const auto end = record.Take<int64_t>();
      trace.work.push_back({stream, std::move(label), bytes, begin, end, record.Take<int32_t>()});
    }
    if (kind != Kind::kCall) return;
    TracedCall& call = trace.calls.emplace_back();
    call.function = &trace.functions.at(record.Take<uint16_t>());
    call.thread = thread;
    call.ticket = record.Take<uint64_t>();
    call.begin = record.Take<int64_t>();
    for (size_t i = 0; i < call.function->params.size(); ++i) call.args.push_back(record.TakeValue());
    of_ticket[call.ticket] = trace.calls.size() - 1;
  });
  ForEachRecord(file, &trace, [&](Kind kind, Reader& record, uint32_t) {
    if (kind != Kind::kReturn) return;
    const auto found = of_ticket.find(record.Take<uint64_t>());
    if (found != of_ticket.end()) TakeReturn(record, &trace.calls[found->second]);
  });
  const auto earlier = [](const TracedCall& a, const TracedCall& b) { return a.ticket < b.ticket; };
  std::sort(trace.calls.begin(), trace.calls.end(), earlier);
  return trace;
}

std::optional<MemoryRange> MemoryMadeBy(const TracedCall& call) {
  const auto& params = call.function->params;
  for (size_t i = 0; i + 1 < params.size(); ++i) {
    if (params[i].type != "void**" || params[i + 1].name != "size") continue;
    const auto made = call.after.find(i);
    if (made == call.after.end() || made->second.kind != Value::kPointer) return std::nullopt;
    return MemoryRange{made->second.address, static_cast<uint64_t>(call.args[i + 1].integer)};
  }
  return std::nullopt;
}

std::string Naming::TensorText(const TracedCall& call) {
  const Traced* const dims = call.Arg("viewDims");
  const Traced* const strides = call.Arg("stride");
  const Traced* const data = call.Arg("tensorData");
  std::string text = fmt::format("{} {}", Name(static_cast<DType>(call.Arg("dataType")->integer)), ListText(dims));
  if (strides && strides->kind == Value::kArray) {
    int64_t dense = 1;
    bool is_dense = true;
    for (size_t i = strides->elements(); i-- > 0;) {
      is_dense = is_dense && (strides->Integer(i) == dense || dims->Integer(i) == 1);
      dense *= dims->Integer(i);
    }
    if (!is_dense) text += " strides " + ListText(strides);
  }
  if (call.Arg("offset")->integer != 0) text += fmt::format(" offset {}", call.Arg("offset")->integer);
  const auto format = static_cast<Format>(call.Arg("format")->integer);
  if (format != Format::kND) text += " " + Name(format);
  return text + " at " + (data ? Text(*data, "void*") : "?");
}

void Naming::Learn(const TracedCall& call) {
  const std::string& name = call.function->name;
  if (const auto made = MemoryMadeBy(call)) {
    memory_[made->begin] = {Numbered(name.find("Host") == std::string::npos ? "mem" : "pinned"), made->bytes, false};
  }
  const bool frees = name.rfind("aclrtFree", 0) == 0 || name == "aclrtReleaseMemAddress";
  if (frees && !call.args.empty() && call.returned && !call.failed()) {
    const auto found = memory_.find(call.args[0].address);
    if (found != memory_.end()) found->second.freed = true;
  }
  const uint64_t made = call.result.kind == Value::kPointer ? call.result.address : 0;
  if (made == 0) return;
  if (name == "aclCreateTensor") descriptions_[made] = TensorText(call);
  if (name == "aclCreateScalar" && call.args[0].kind == Value::kBytes) descriptions_[made] = ScalarText(call);
  if (name.find("Array") != std::string::npos) descriptions_[made] = ListText(&call.args[0]);
  if (name == "aclCreateTensorList" || name == "aclCreateScalarList") {
    std::vector<std::string> members;
    for (const uint64_t member : call.args[0].pointers) members.push_back(Of(member, ""));
    descriptions_[made] = fmt::format("[{}]", fmt::join(members, ", "));
  }
}

std::string Naming::Of(uint64_t value, const std::string& type) {
  const auto description = descriptions_.find(value);
  return NameOf(value, type) + (description == descriptions_.end() ? "" : " " + description->second);
}

std::string Naming::NameOf(uint64_t value, const std::string& type) {
  if (value == 0) return type == "aclrtStream" ? "default" : "null";
  const char* const kind = KindOfHandle(value);
  if (!kind) {
    auto range = memory_.upper_bound(value);
    if (range != memory_.begin()) {
      --range;
      const uint64_t offset = value - range->first;
      if (offset < range->second.bytes) {
        return range->second.name + (offset ? fmt::format("+{:#x}", offset) : "") +
               (range->second.freed ? " (freed)" : "");
      }
    }
  }
  std::string& name = names_[value];
  if (name.empty()) name = Numbered(kind ? kind : type.rfind("HcclComm", 0) == 0 ? "comm" : "host");
  return name;
}

std::string Naming::Text(const Traced& value, const std::string& type) {
  switch (value.kind) {
    case Value::kNothing:
      return "";
    case Value::kNull:
      return type == "aclrtStream" ? "default" : "null";
    case Value::kInteger:
      if (type == "aclDataType") return Name(static_cast<DType>(value.integer));
      if (type == "aclFormat") return Name(static_cast<Format>(value.integer));
      if (type == "bool") return value.integer ? "true" : "false";
      return std::to_string(value.integer);
    case Value::kReal:
      return fmt::format("{}", value.real);
    case Value::kText:
      return "\"" + value.bytes + "\"";
    case Value::kPointer:
      return Of(value.address, type);
    case Value::kPlace:
      return "&";
    case Value::kFunction:
      return "function";
    case Value::kPointers: {
      std::vector<std::string> members;
      for (size_t i = 0; i < std::min(value.pointers.size(), kMostShown); ++i) members.push_back(Of(value.pointers[i], ""));
      return fmt::format("[{}{}]", fmt::join(members, ", "), value.pointers.size() > kMostShown ? ", ..." : "");
    }
    case Value::kArray:
      return ListText(&value);
    case Value::kBytes:
      return fmt::format("{} bytes", value.bytes.size());
    case Value::kContents:
      return Of(value.address, type);
    case Value::kDigest:
      return fmt::format("digest {:016x}", value.address);
  }
  return "?";
}

std::string Naming::Arguments(const TracedCall& call) {
  std::vector<std::string> words;
  for (size_t i = 0; i < call.args.size(); ++i) {
    if (call.args[i].kind == Value::kPlace) continue;  // shown with what was put there
    words.push_back(fmt::format("{}={}", call.function->params[i].name, Text(call.args[i], call.function->params[i].type)));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string Naming::Results(const TracedCall& call) {
  if (!call.returned) return "did not return";
  const std::string& type = call.function->result;
  std::string text = Text(call.result, type);
  if (call.result.kind == Value::kNothing) text = "done";
  if (call.result.kind == Value::kPointer) text = NameOf(call.result.address, type);
  for (const auto& [param, value] : call.after) {
    if (call.args[param].kind != Value::kPlace && value.kind != Value::kDigest) continue;
    std::string place = call.function->params[param].type;
    if (!place.empty() && place.back() == '*') place.pop_back();
    text += fmt::format(", {}={}", call.function->params[param].name, Text(value, place));
  }
  return text;
}

}  // namespace anyacl::tool
