// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What must hold whatever the numbers are: layouts, aliases, masks, threads, batches and repetition do
// not change a bit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "cpu/parallel.h"
#include "harness/call.h"
#include "harness/cases.h"
#include "harness/data.h"
#include "harness/session.h"
#include "numeric/references.h"
#include "operators_with_cases.h"
#include "plan/layout.h"
#include "runtime/submit.h"
#include "sanitized.h"

namespace anyacl {
namespace {

using contract::CallSpec;
using harness::Call;
using harness::CallOptions;
using harness::Case;
using harness::CaseCall;
using harness::Data;
using harness::TypeChoice;
using Bytes = std::vector<unsigned char>;

using harness::Below;
using harness::Random;

// Whether a call of GroupNormBackward runs in channels-last order. It then adds up the elements of a
// group row by row, not channel by channel: the same numbers in another tree, so the last bits differ
// from those of the packed call. With one channel or one position both trees are the same.
bool SumsInOrderOfMemory(const CallSpec& spec) {
  enum { kGradOut, kInput, kN = 5, kC, kHxW };
  const ChannelShape shape{spec.args[kN].integer, spec.args[kC].integer, spec.args[kHxW].integer};
  return shape.c > 1 && shape.s > 1 && IsChannelsLast(spec.args[kGradOut].tensor, shape) &&
         IsChannelsLast(spec.args[kInput].tensor, shape);
}
bool Never(const CallSpec&) { return false; }

// The properties an operator has beyond those of all.
struct Traits {
  const char* op;
  bool elementwise;        // every output element depends on the input elements at its place
  const char* per_sample;  // an input with entries for each index of the first axis
  bool (*other_bits)(const CallSpec& spec);  // dense tensors would be summed in another order
};
const Traits kTraits[] = {
    {"aclnnEluBackward", true, "gradOutput", Never},
    {"aclnnGroupNormBackward", false, "mean", SumsInOrderOfMemory},
    {"aclnnBatchNormElemtBackward", false, "gradOut", Never},
    {"aclnnRmsNormGrad", false, "rstd", Never},
};

const Traits& TraitsOf(const Operator& op) {
  for (const Traits& t : kTraits) {
    if (std::strcmp(t.op, op.contract.op()) == 0) return t;
  }
  throw std::out_of_range(std::string("no traits for ") + op.contract.op());
}

std::vector<int> RandomOrder(Random& random, int rank) {
  std::vector<int> order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

// Strides for memory order `order` (fastest first), with steps between the elements of each axis.
void SetStrides(Tensor* t, const std::vector<int>& order, const std::function<int64_t()>& step,
                int64_t offset) {
  int64_t reach = 1;
  for (int axis : order) {
    t->strides[axis] = reach * step();
    reach = t->strides[axis] * t->dims[axis];
  }
  t->offset = offset;
  t->storage = Dims{offset + reach};
}

void RandomLayout(Random& random, bool is_output, Tensor* t) {
  int64_t gaps = 3;  // axes with a step, so that memory stays short
  const auto step = [&] { return Below(random, 2) == 0 && gaps-- > 0 ? 2 + Below(random, 2) : 1; };
  SetStrides(t, RandomOrder(random, t->rank()), step, Below(random, 9));
  if (is_output || Below(random, 3) != 0) return;
  for (int i = 0; i < t->rank(); ++i) {
    if (Below(random, 3) == 0) t->strides[i] = 0;  // a broadcast view
  }
}

// One layout for each tensor, or (so that all may run as they lie) one for all of a shape.
void RandomLayouts(Random& random, const Operator& op, CallSpec* spec) {
  const bool together = Below(random, 3) == 0;
  const uint64_t seed = random();
  for (size_t i = 0; i < spec->args.size(); ++i) {
    const contract::Arg& arg = op.contract.args()[i];
    if (!arg.is_tensor() || spec->args[i].null) continue;
    Random same(seed);
    RandomLayout(together ? same : random, together || arg.kind == contract::ArgKind::kOutput,
                 &spec->args[i].tensor);
  }
}

// One NaN is enough to make a whole group NaN: other numbers must have their turn, too.
Data DataOf(int64_t round) { return round % 2 == 0 ? Data::kRandom : Data::kHostile; }
constexpr Data kBoth[] = {Data::kRandom, Data::kHostile};

// Results of all outputs, one behind the other.
Bytes ResultsOf(const Call& call) {
  Bytes all;
  for (int arg : call.Outputs()) {
    const Bytes bytes = call.Elements(arg);
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}

// NaN is NaN: which sign and payload arithmetic hands on depends on the order of the operands of an
// addition, and compilers choose that. Every other bit counts.
void ForgetPayloads(DType dtype, Bytes* elements) {
  const size_t size = SizeOf(dtype);
  for (size_t at = 0; at < elements->size(); at += size) {
    if (!std::isnan(harness::Decode(dtype, elements->data() + at))) continue;
    harness::Encode(dtype, std::numeric_limits<double>::quiet_NaN(), elements->data() + at);
  }
}

Bytes WithoutPayloads(const Call& call, int arg) {
  Bytes elements = call.Elements(arg);
  ForgetPayloads(call.spec().args[arg].tensor.dtype, &elements);
  return elements;
}

std::string Describe(const Call& call) {
  std::string text = call.op().contract.op();
  for (size_t i = 0; i < call.spec().args.size(); ++i) {
    if (!call.op().contract.args()[i].is_tensor()) continue;
    const Tensor& t = call.spec().args[i].tensor;
    text += fmt::format("\n  {}: {} {} strides {} offset {}", call.op().contract.args()[i].name,
                        Name(t.dtype), ToString(t.dims), ToString(t.strides), t.offset);
  }
  return text;
}

// The samples [first, first + spec's first dim) of `whole`, as a call of their own.
void TakeSamples(const Call& whole, int64_t first, Call* part) {
  for (int arg : part->Inputs()) {
    const std::vector<double>& all = whole.Operand(arg);
    const int64_t count = part->spec().args[arg].tensor.numel();
    const int64_t samples = whole.spec().args[arg].tensor.dims[0];
    const bool per_sample = count != static_cast<int64_t>(all.size());
    const auto begin =
        all.begin() + (per_sample ? first * static_cast<int64_t>(all.size()) / samples : 0);
    part->SetInput(arg, std::vector<double>(begin, begin + count));
  }
}

class PropertyTest : public testing::Test {
 protected:
  void TearDown() override { cpu::SetMaxThreads(0); }

  // Calls visit(op, cases, traits) for every operator of the family. Something must have been compared of each.
  template <class Visit>
  void ForEachOperator(Visit&& visit) {
    ForEachOperatorThat("exists", [](const Operator&) { return true; }, visit);
  }

  // The same for the operators that `qualifies`; there must be one, in whatever family.
  template <class Qualifies, class Visit>
  void ForEachOperatorThat(const char* what, Qualifies&& qualifies, Visit&& visit) {
    const std::vector<const Operator*> all = AllOperatorsWithCases();
    ASSERT_TRUE(std::any_of(all.begin(), all.end(), [&](const Operator* op) { return qualifies(*op); }))
        << "no operator " << what;
    bool any = false;
    for (const Operator* op : OperatorsWithCases()) {
      if (!qualifies(*op)) continue;
      any = true;
      const int64_t before = compared_;
      visit(*op, harness::CasesOf(op->contract.op()), TraitsOf(*op));
      EXPECT_GT(compared_, before) << op->contract.op() << ": nothing was compared";
    }
    if (!any) GTEST_SKIP() << "no operator of this family " << what;
  }

  Bytes Run(Call& call) {
    EXPECT_EQ(call.Execute(session_.stream()), 0) << Describe(call) << "\n" << aclGetRecentErrMsg();
    EXPECT_EQ(call.CheckMemory(), "") << Describe(call);
    return ResultsOf(call);
  }

  // The same numbers in dense tensors that share nothing.
  Bytes DenseResults(const Call& call) {
    CallSpec spec = call.spec();
    for (size_t i = 0; i < spec.args.size(); ++i) {
      Tensor& t = spec.args[i].tensor;
      t.strides = ContiguousStrides(t.dims);
      t.storage = t.dims;
      t.offset = 0;
    }
    Call dense(call.op(), spec);
    for (int arg : call.Inputs()) dense.SetInput(arg, call.Operand(arg));
    return Run(dense);
  }

  CallSpec RandomCall(const harness::OperatorCases& cases, const TypeChoice& types) {
    return harness::MakeRandomCall(cases, types, random_);
  }

  CallSpec CallOf(const harness::OperatorCases& cases, const TypeChoice& types, const Dims& dims) {
    harness::Attributes defaults("");
    return cases.make(dims, types.dtypes, defaults);
  }

  // Calls body(call, input, output, shift) for all dtypes and layouts of one output and an input of its shape, which it
  // may put `shift` elements apart.
  template <class Body>
  void ForEachOverlap(const Operator& op, const harness::OperatorCases& cases,
                      std::initializer_list<int64_t> shifts, Body&& body) {
    for (const TypeChoice& types : cases.types) {
      for (const int64_t shift : shifts) {
        for (const bool transposed : {false, true}) {
          CallSpec spec = CallOf(cases, types, {23, 31});
          const Call model(op, spec);
          const int output = model.Outputs()[0];
          const int input = model.Inputs()[Below(random_, 2)];
          if (transposed) harness::SetLayout("transposed", &spec.args[output].tensor);
          Call call(op, spec, {.data = DataOf(shift), .seed = random_()});
          body(call, input, output, shift);
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }

  // Inputs that lie like the first output, so that it may take their place.
  std::vector<int> InputsLikeTheOutput(const Operator& op, const CallSpec& spec) {
    const Call model(op, spec);
    std::vector<int> alike;
    if (model.Outputs().empty()) return alike;
    const Tensor& output = spec.args[model.Outputs()[0]].tensor;
    for (int arg : model.Inputs()) {
      const Tensor& t = spec.args[arg].tensor;
      if (t.dims == output.dims && SizeOf(t.dtype) == SizeOf(output.dtype)) alike.push_back(arg);
    }
    return alike;
  }

  // Runs some samples of `whole` alone; false when the first axis of the call is no batch.
  bool CheckSamples(const harness::OperatorCases& cases, const Case& row, const TypeChoice& types,
                    const Call& whole, const char* per_sample, int64_t samples) {
    const Dims dims = row.ParsedDims();
    const int64_t first = Below(random_, dims[0] - samples + 1);
    Dims fewer = dims;
    fewer[0] = samples;
    harness::Attributes attributes(row.attributes);
    Call part(whole.op(), cases.make(fewer, types.dtypes, attributes));
    const int counted = whole.op().contract.ArgIndex(per_sample);
    const int64_t entries = whole.spec().args[counted].tensor.numel();
    if (part.spec().args[counted].tensor.numel() * dims[0] != entries * samples) return false;
    TakeSamples(whole, first, &part);
    Run(part);
    const Bytes all = WithoutPayloads(whole, whole.Outputs()[0]);
    const Bytes some = WithoutPayloads(part, part.Outputs()[0]);
    EXPECT_EQ(std::memcmp(some.data(), all.data() + first * (all.size() / dims[0]), some.size()), 0)
        << samples << " samples from " << first;
    return true;
  }

  // All masks of a call that wants everything.
  void CheckMasks(const Operator& op, int mask, CallSpec spec, Data data) {
    Call full(op, spec, {.data = data});
    Run(full);
    std::vector<Bytes> results, untouched;
    for (int arg : full.Outputs()) results.push_back(WithoutPayloads(full, arg));
    full.Refill();
    for (int arg : full.Outputs()) untouched.push_back(WithoutPayloads(full, arg));
    for (int bits = 0; bits < 1 << results.size(); ++bits) {
      for (size_t i = 0; i < results.size(); ++i) spec.args[mask].bools.values[i] = bits >> i & 1;
      Call call(op, spec, {.data = data});
      Run(call);
      for (size_t i = 0; i < results.size(); ++i) {
        ++compared_;
        EXPECT_EQ(WithoutPayloads(call, call.Outputs()[i]),
                  bits >> i & 1 ? results[i] : untouched[i])
            << "mask " << bits << ", output " << i;
      }
    }
  }

  harness::Session session_;
  Random random_{20240607};  // fixed: a failure comes back
  int64_t compared_ = 0;
};

bool IsElementwise(const Operator& op) { return TraitsOf(op).elementwise; }

// ---- layouts ----

void ExpectPossible(const Call& call) {
  const auto expected = numeric::ReferenceOf(call.op().contract.op())(call);
  const std::vector<int> outputs = call.Outputs();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::vector<double> got = call.Values(outputs[i]);
    for (size_t k = 0; k < got.size(); ++k) {
      ASSERT_TRUE(numeric::Matches(got[k], expected[i][k]))
          << Describe(call) << "\n  output " << i << " element " << k << ": " << got[k];
    }
  }
}

TEST_F(PropertyTest, StridedEqualsContiguous) {
  ForEachOperator(
      [&](const Operator& op, const harness::OperatorCases& cases, const Traits& traits) {
        int64_t equal = 0, other = 0;
        for (const TypeChoice& types : cases.types) {
          for (int round = 0; round < 60; ++round) {
            CallSpec spec = RandomCall(cases, types);
            RandomLayouts(random_, op, &spec);
            Call call(op, spec, {.data = DataOf(round), .seed = random_()});
            const Bytes strided = Run(call);
            ++compared_;
            if (traits.other_bits(spec)) {
              ++other;
              ExpectPossible(call);
            } else {
              ++equal;
              ASSERT_EQ(strided, DenseResults(call)) << Describe(call);
            }
          }
        }
        EXPECT_GT(equal, 4 * other) << op.contract.op();
      });
}

// Tensors that are dense in one common order of the axes need no scratch memory, whichever order it
// is.
TEST_F(PropertyTest, ACommonDenseOrderNeedsNoWorkspace) {
  ForEachOperatorThat(
      "is element-wise", IsElementwise, [&](const Operator& op, const harness::OperatorCases& cases, const Traits&) {
        for (const TypeChoice& types : cases.types) {
          for (int round = 0; round < 10; ++round) {
            CallSpec spec = RandomCall(cases, types);
            const std::vector<int> order = RandomOrder(random_, spec.args[0].tensor.rank());
            for (size_t i = 0; i < spec.args.size(); ++i) {
              if (!op.contract.args()[i].is_tensor()) continue;
              SetStrides(
                  &spec.args[i].tensor, order, [] { return 1; }, Below(random_, 5));
            }
            Call call(op, spec, {.data = Data::kHostile});
            const Bytes result = Run(call);
            EXPECT_EQ(call.workspace_size(), 0u) << Describe(call);
            ++compared_;
            ASSERT_EQ(result, DenseResults(call)) << Describe(call);
          }
        }
      });
}

TEST_F(PropertyTest, MisalignedMemory) {
  ForEachOperator([&](const Operator& op, const harness::OperatorCases& cases, const Traits&) {
    for (const TypeChoice& types : cases.types) {
      for (const Case& row : cases.cases) {
        if (!row.Has("small")) continue;
        const CaseCall made = harness::MakeCall(op.contract, cases, row, types);
        // The largest element of the call: every address stays a multiple of its own size.
        size_t size = 1;
        for (const contract::ArgSpec& arg : made.spec.args)
          size = std::max(size, SizeOf(arg.tensor.dtype));
        for (const Data data : kBoth) {
          Call aligned(op, made, {.data = data});
          const Bytes expected = Run(aligned);
          for (size_t elements : {1, 3, 7}) {
            Call call(op, made, {.data = data, .shift = elements * size});
            ++compared_;
            ASSERT_EQ(Run(call), expected)
                << row.name << " " << types.label << " off by " << elements;
          }
        }
      }
    }
  });
}

TEST_F(PropertyTest, EmptyTensorsOfEveryRank) {
  const auto check = [&](const Operator& op, const harness::OperatorCases& cases, const Traits&) {
    for (const TypeChoice& types : cases.types) {
      for (int rank = 1; rank <= 8; ++rank) {
        for (int zero = 0; zero < rank; ++zero) {
          Dims dims;
          for (int i = 0; i < rank; ++i) dims.push_back(i == zero ? 0 : i + 1);
          Call call(op, CallOf(cases, types, dims));
          EXPECT_EQ(Run(call).size(), 0u);
          EXPECT_EQ(call.workspace_size(), 0u);
          for (int arg : call.Outputs()) {  // no memory at all is as good
            auto* const tensor = static_cast<aclTensor*>(const_cast<void*>(call.raw()[arg].handle));
            EXPECT_EQ(aclSetRawTensorAddr(tensor, nullptr), 0);
          }
          EXPECT_EQ(call.Execute(session_.stream()), 0);
          ++compared_;
        }
      }
    }
  };
  ForEachOperatorThat("is element-wise", IsElementwise, check);
}

// ---- aliases ----

TEST_F(PropertyTest, OutputInPlaceOfAnInput) {
  ForEachOperator([&](const Operator& op, const harness::OperatorCases& cases, const Traits&) {
    int64_t compared = 0;
    for (const TypeChoice& types : cases.types) {
      for (int round = 0; round < 30; ++round) {
        CallSpec spec = RandomCall(cases, types);
        const std::vector<int> alike = InputsLikeTheOutput(op, spec);
        if (alike.empty()) continue;
        const int output = Call(op, spec).Outputs()[0];
        const int input = alike[Below(random_, static_cast<int64_t>(alike.size()))];
        RandomLayout(random_, true, &spec.args[input].tensor);
        const DType dtype = spec.args[output].tensor.dtype;
        spec.args[output].tensor = spec.args[input].tensor;
        spec.args[output].tensor.dtype = dtype;
        CaseCall made{spec, std::vector<int>(spec.args.size())};
        std::iota(made.memory_of.begin(), made.memory_of.end(), 0);
        made.memory_of[output] = input;
        Call call(op, made, {.data = DataOf(round), .seed = random_()});
        const Bytes in_place = Run(call);
        ASSERT_EQ(in_place, DenseResults(call)) << Describe(call);
        ++compared;
        ++compared_;
      }
    }
    EXPECT_GT(compared, 30) << op.contract.op();
  });
}

// One block of memory in which an input and the output overlap, some elements apart.
class Overlap {
 public:
  Overlap(Call& call, int input, int output, int64_t shift_elements)
      : call_(call), input_(input), output_(output), memory_(kBytes, true) {
    const size_t size = std::max(SizeOf(TensorOf(input).dtype), SizeOf(TensorOf(output).dtype));
    input_at_ = memory_.payload() + kBytes / 2;
    output_at_ = input_at_ + shift_elements * static_cast<int64_t>(size);
    SetAddress(input_, input_at_);
    SetAddress(output_, output_at_);
    const Bytes dense = harness::Encode(TensorOf(input).dtype, call.Operand(input));
    const size_t each = SizeOf(TensorOf(input).dtype);
    const std::vector<int64_t> offsets = harness::ElementOffsets(TensorOf(input));
    Bytes image = memory_.Read();
    for (size_t i = 0; i < offsets.size(); ++i) {
      std::memcpy(&image[At(input_at_) + offsets[i] * each], dense.data() + i * each, each);
    }
    memory_.Write(image);
  }

  Bytes Result() const {
    const size_t each = SizeOf(TensorOf(output_).dtype);
    const Bytes image = memory_.Read();
    Bytes result;
    for (int64_t offset : harness::ElementOffsets(TensorOf(output_))) {
      const auto element = image.begin() + static_cast<int64_t>(At(output_at_)) + offset * each;
      result.insert(result.end(), element, element + each);
    }
    return result;
  }
  std::string CheckGuards() const { return memory_.CheckGuards(); }

 private:
  size_t At(const unsigned char* address) const {
    return static_cast<size_t>(address - memory_.payload());
  }

  static constexpr size_t kBytes = 1 << 17;

  const Tensor& TensorOf(int arg) const { return call_.spec().args[arg].tensor; }
  void SetAddress(int arg, void* address) {
    auto* const tensor = static_cast<aclTensor*>(const_cast<void*>(call_.raw()[arg].handle));
    EXPECT_EQ(aclSetRawTensorAddr(tensor, address), 0);
  }

  Call& call_;
  int input_;
  int output_;
  harness::GuardedMemory memory_;  // device memory is host memory on this backend
  unsigned char* input_at_;
  unsigned char* output_at_;
};

void ExpectResult(const Call& call, const Overlap& overlap, const Bytes& expected, int64_t shift) {
  const Bytes result = overlap.Result();
  ASSERT_TRUE(std::equal(result.begin(), result.end(), expected.begin()))
      << Describe(call) << "\n  output " << shift << " elements behind the input";
  EXPECT_EQ(overlap.CheckGuards(), "");
}

TEST_F(PropertyTest, PartialOverlapOfInputAndOutput) {
  ForEachOperator([&](const Operator& op, const harness::OperatorCases& cases, const Traits&) {
    const auto check = [&](Call& call, int input, int output, int64_t shift) {
      const Bytes expected = DenseResults(call);
      const Overlap overlap(call, input, output, shift);
      ASSERT_EQ(call.Execute(session_.stream()), 0);
      ++compared_;
      ExpectResult(call, overlap, expected, shift);
    };
    ForEachOverlap(op, cases, {-37, -3, -1, 0, 1, 2, 64}, check);
  });
}

// Addresses set after phase 1 may need packing that was not planned: then the run is refused, and never wrong.
TEST_F(PropertyTest, OverlapThatComesAfterPhaseOne) {
  ForEachOperator([&](const Operator& op, const harness::OperatorCases& cases, const Traits&) {
    int64_t refused = 0, right = 0;
    const auto check = [&](Call& call, int input, int output, int64_t shift) {
      const Bytes expected = DenseResults(call);
      ASSERT_EQ(call.Plan(), 0);
      const Overlap overlap(call, input, output, shift);
      const int32_t code = call.Run(session_.stream());
      ++compared_;
      if (code != 0) {
        ++refused;
        ASSERT_EQ(code, 161002);
        ASSERT_NE(std::string(aclGetRecentErrMsg()).find(" must not overlap "), std::string::npos);
        return;
      }
      ++right;
      ASSERT_EQ(aclrtSynchronizeStream(session_.stream()), 0);
      ExpectResult(call, overlap, expected, shift);
    };
    ForEachOverlap(op, cases, {-37, -1, 0, 1, 64, 2048}, check);
    EXPECT_GT(refused, 0) << op.contract.op();
    EXPECT_GT(right, 0) << op.contract.op();
  });
}

// An output view that overlaps itself has one result, the last in row-major order, with any number
// of threads.
TEST_F(PropertyTest, OutputsThatOverlapThemselves) {
  ForEachOperator([&](const Operator& op, const harness::OperatorCases& cases, const Traits&) {
    const Dims dims{300, 401};
    // {1, 2} and {3, 7}: sorted by stride, the last writer would be another.
    for (const Dims& strides :
         {Dims{1, 1}, Dims{0, 1}, Dims{1, 0}, Dims{0, 0}, Dims{200, 1}, Dims{1, 2}, Dims{3, 7}}) {
      CallSpec spec = CallOf(cases, cases.types[0], dims);
      Call model(op, spec, {.data = Data::kRandom});
      const int output = model.Outputs()[0];
      const std::vector<double> whole =
          harness::Decode(spec.args[output].tensor.dtype, DenseResults(model));
      spec.args[output].tensor.strides = strides;
      const std::vector<int64_t> offsets = harness::ElementOffsets(spec.args[output].tensor);
      std::vector<double> last(*std::max_element(offsets.begin(), offsets.end()) + 1);
      for (size_t i = 0; i < offsets.size(); ++i) last[offsets[i]] = whole[i];
      for (int threads : {1, 2, 16}) {
        cpu::SetMaxThreads(threads);
        Call call(op, spec, {.data = Data::kRandom});
        Run(call);
        const std::vector<double> got = call.Values(output);
        ++compared_;
        for (size_t i = 0; i < got.size(); ++i) {
          ASSERT_EQ(got[i], last[offsets[i]])
              << ToString(strides) << " element " << i << ", " << threads;
        }
      }
    }
  });
}

// ---- threads and repetition ----

// Guards and gaps are the numeric tests' matter: on long tensors looking at them takes longer than
// the rest.
TEST_F(PropertyTest, AnyNumberOfThreadsAndAnyRunGivesTheSameBits) {
  const auto results = [&](Call& call, int threads) {
    cpu::SetMaxThreads(threads);
    call.Refill();
    EXPECT_EQ(call.Execute(session_.stream()), 0);
    return ResultsOf(call);
  };
  ForEachOperator([&](const Operator& op, const harness::OperatorCases& cases, const Traits&) {
    for (const Case& row : cases.cases) {
      if (row.Has("small") || row.Has("large") || row.Has("bench")) continue;
      if (kSanitized && Numel(row.ParsedDims()) > 100'000) continue;
      for (const TypeChoice& types : cases.types) {
        if (!types.bench) continue;
        for (const Data data : kBoth) {
          Call call(op, harness::MakeCall(op.contract, cases, row, types), {.data = data});
          const Bytes expected = results(call, 1);
          for (int threads : {1, 2, 3, 16}) {
            ++compared_;
            ASSERT_TRUE(results(call, threads) == expected)
                << row.name << " " << types.label << ", " << threads << " threads";
          }
        }
      }
    }
  });
}

// What lies in the memory of the outputs of a call whose tensors are dense.
Bytes MemoryOfOutputs(const Call& call) {
  Bytes all;
  for (int arg : call.Outputs()) {
    const Tensor& t = call.spec().args[arg].tensor;
    const size_t bytes = static_cast<size_t>(t.numel()) * SizeOf(t.dtype), before = all.size();
    all.resize(before + bytes);
    harness::Require(aclrtMemcpy(all.data() + before, bytes, call.address(arg), bytes,
                                 ACL_MEMCPY_DEVICE_TO_HOST),
                     "aclrtMemcpy");
  }
  return all;
}

void PoisonOutputs(const Call& call) {
  for (int arg : call.Outputs()) {
    const Tensor& t = call.spec().args[arg].tensor;
    const size_t bytes = static_cast<size_t>(t.numel()) * SizeOf(t.dtype);
    harness::Require(aclrtMemset(call.address(arg), bytes, 0xa5, bytes), "aclrtMemset");
  }
}

bool IsDenseCase(const Case& row) {
  return !row.Has("large") && !row.Has("strided") && !row.Has("alias") && !row.Has("empty");
}

// What can be run many times in a test.
int64_t MostElements() {
  if (kSanitized) return 10'000;
  return runtime::CurrentBackend().launches() ? 10'000'000 : 100'000;
}

TEST_F(PropertyTest, AHundredRunsAndAReplayGiveTheSameBits) {
  const aclrtStream stream = session_.stream();
  const auto check = [&](Call& call) {
    ASSERT_EQ(call.PlanRepeatable(), 0);
    const auto results = [&](auto&& submit) {
      PoisonOutputs(call);
      EXPECT_EQ(submit(), 0);
      EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
      return MemoryOfOutputs(call);
    };
    const Bytes expected = results([&] { return call.Run(stream); });
    for (int run = 1; run < (kSanitized ? 10 : 100); ++run) {
      ASSERT_TRUE(results([&] { return call.Run(stream); }) == expected) << "run " << run;
    }
    aclmdlRI recorded = nullptr;
    ASSERT_EQ(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED), 0);
    ASSERT_EQ(call.Run(stream), 0);
    ASSERT_EQ(aclmdlRICaptureEnd(stream, &recorded), 0);
    EXPECT_TRUE(results([&] { return aclmdlRIExecuteAsync(recorded, stream); }) == expected)
        << "replay";
    EXPECT_EQ(aclmdlRIDestroy(recorded), 0);
    ++compared_;
  };
  ForEachOperator([&](const Operator& op, const harness::OperatorCases& cases, const Traits&) {
    for (const Case& row : cases.cases) {
      if (!IsDenseCase(row) || Numel(row.ParsedDims()) > MostElements()) continue;
      for (const TypeChoice& types : cases.types) {
        if (!types.bench) continue;
        Call call(op, harness::MakeCall(op.contract, cases, row, types));
        check(call);
        ASSERT_FALSE(HasFailure()) << op.contract.op() << " " << row.name << " " << types.label;
      }
    }
  });
}

// Kernels of several streams, too, that are on the device at once and get in each other's way.
TEST_F(PropertyTest, ManyStreamsAtOnceGiveTheSameBits) {
  constexpr int kStreams = 4, kRuns = 8;
  std::vector<aclrtStream> streams(kStreams);
  for (aclrtStream& stream : streams) ASSERT_EQ(aclrtCreateStream(&stream), 0);
  const auto check = [&](std::vector<std::unique_ptr<Call>>& calls) {
    for (const auto& call : calls) ASSERT_EQ(call->PlanRepeatable(), 0);
    ASSERT_EQ(calls[0]->Run(streams[0]), 0);
    ASSERT_EQ(aclrtSynchronizeStream(streams[0]), 0);
    const Bytes expected = MemoryOfOutputs(*calls[0]);
    for (const auto& call : calls) PoisonOutputs(*call);
    for (int run = 0; run < kRuns; ++run) {
      for (int i = 0; i < kStreams; ++i) ASSERT_EQ(calls[i]->Run(streams[i]), 0);
    }
    for (int i = 0; i < kStreams; ++i) {
      ASSERT_EQ(aclrtSynchronizeStream(streams[i]), 0);
      EXPECT_TRUE(MemoryOfOutputs(*calls[i]) == expected) << "stream " << i;
      ++compared_;
    }
  };
  ForEachOperator([&](const Operator& op, const harness::OperatorCases& cases, const Traits&) {
    for (const Case& row : cases.cases) {
      if (!IsDenseCase(row) || Numel(row.ParsedDims()) > MostElements()) continue;
      for (const TypeChoice& types : cases.types) {
        if (!types.bench) continue;
        std::vector<std::unique_ptr<Call>> calls;
        for (int i = 0; i < kStreams; ++i) {
          calls.push_back(
              std::make_unique<Call>(op, harness::MakeCall(op.contract, cases, row, types)));
        }
        check(calls);
        ASSERT_FALSE(HasFailure()) << op.contract.op() << " " << row.name << " " << types.label;
      }
    }
  });
  for (aclrtStream stream : streams) EXPECT_EQ(aclrtDestroyStream(stream), 0);
}

// Kernels that keep some places of the device until the host lets them go: a kernel whose blocks wait for each other
// must not wait for those places.
TEST_F(PropertyTest, KernelsThatStayHoldUpNobodyAndChangeNoBits) {
  if (!runtime::CurrentBackend().launches()) GTEST_SKIP() << "only on a GPU";
  // Of these grids an H200 holds no block more: most types fill its registers or shared memory.
  const struct {
    const Operator& op;
    Dims dims;
    const char* attributes;
  } kLarge[] = {{OperatorNamed("aclnnGroupNormBackward"), {4, 9, 364672}, "group=3"},
                {OperatorNamed("aclnnRmsNormGrad"), {9, 135000}, ""},
                {OperatorNamed("aclnnRmsNormGrad"), {3, 270000}, ""}};
  constexpr int kStreams = 24;  // of the 32 that run side by side
  std::vector<aclrtStream> streams(kStreams);
  for (aclrtStream& stream : streams) ASSERT_EQ(aclrtCreateStream(&stream), 0);
  aclrtStream writer = nullptr;
  ASSERT_EQ(aclrtCreateStream(&writer), 0);
  void* word = nullptr;
  ASSERT_EQ(aclrtMalloc(&word, 8, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  const auto check = [&](Call& call) {
    ASSERT_EQ(call.PlanRepeatable(), 0);
    ASSERT_EQ(call.Run(session_.stream()), 0);
    ASSERT_EQ(aclrtSynchronizeStream(session_.stream()), 0);
    const Bytes expected = MemoryOfOutputs(call);
    PoisonOutputs(call);
    ASSERT_EQ(aclrtMemset(word, 8, 0, 8), 0);
    for (aclrtStream stream : streams)
      EXPECT_EQ(aclrtValueWait(word, 1, ACL_STREAM_WAIT_VALUE_EQ, stream), 0);
    for (int run = 0; run < 2; ++run) EXPECT_EQ(call.Run(session_.stream()), 0);
    EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(session_.stream(), 20'000), 0);
    EXPECT_EQ(aclrtValueWrite(word, 1, 0, writer), 0);  // they go, whatever came before
    ASSERT_EQ(aclrtSynchronizeDevice(), 0);
    EXPECT_TRUE(MemoryOfOutputs(call) == expected);
    PoisonOutputs(call);  // what the kernel counted must not stay behind
    ASSERT_EQ(call.Run(session_.stream()), 0);
    ASSERT_EQ(aclrtSynchronizeStream(session_.stream()), 0);
    EXPECT_TRUE(MemoryOfOutputs(call) == expected);
  };
  for (const auto& large : kLarge) {
    if (!IsChosen(large.op)) continue;
    const harness::OperatorCases& cases = harness::CasesOf(large.op.contract.op());
    for (const TypeChoice& types : cases.types) {
      if (!types.bench) continue;
      for (const size_t shift : {0, 4}) {
        harness::Attributes attributes(large.attributes);
        Call call(large.op, cases.make(large.dims, types.dtypes, attributes), {.shift = shift});
        check(call);
        ASSERT_FALSE(HasFailure()) << Describe(call) << " shift " << shift;
      }
    }
  }
  EXPECT_EQ(aclrtFree(word), 0);
  EXPECT_EQ(aclrtDestroyStream(writer), 0);
  for (aclrtStream stream : streams) EXPECT_EQ(aclrtDestroyStream(stream), 0);
}

// ---- batches ----

// The rows whose first output is dx, with entries for every index of its first axis.
bool HasSamples(const Call& call, const Dims& dims) {
  return !call.Outputs().empty() && call.spec().args[call.Outputs()[0]].tensor.dims == dims;
}

// One sample (a row, for RmsNormGrad) alone, and in a smaller batch, has the bits it has in the whole.
TEST_F(PropertyTest, ASampleDoesNotSeeItsBatch) {
  ForEachOperator(
      [&](const Operator& op, const harness::OperatorCases& cases, const Traits& traits) {
        int64_t compared = 0;
        for (const Case& row : cases.cases) {
          const Dims dims = row.ParsedDims();
          if (row.Has("large") || row.Has("strided") || row.Has("alias") || row.Has("empty"))
            continue;
          if (dims.rank() == 0 || dims[0] < 2 || (kSanitized && Numel(dims) > 100'000)) continue;
          for (const TypeChoice& types : cases.types) {
            if (!types.bench || (Numel(dims) > 100'000 && &types != &cases.types[0])) continue;
            for (const Data data : kBoth) {
              Call whole(op, harness::MakeCall(op.contract, cases, row, types), {.data = data});
              if (!HasSamples(whole, dims)) continue;
              Run(whole);
              for (const int64_t samples : {int64_t{1}, (dims[0] + 1) / 2}) {
                compared += CheckSamples(cases, row, types, whole, traits.per_sample, samples);
                ASSERT_FALSE(HasFailure())
                    << op.contract.op() << " \"" << row.name << "\" " << types.label;
              }
            }
          }
        }
        EXPECT_GT(compared, 30) << op.contract.op();
        compared_ += compared;
      });
}

// ---- masks ----

// The argument that says which outputs are wanted, or -1.
int MaskOf(const Operator& op) {
  const auto args = op.contract.args();
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].kind == contract::ArgKind::kBoolArray) return static_cast<int>(i);
  }
  return -1;
}

// What is not wanted changes nothing of the rest, and is not touched.
TEST_F(PropertyTest, MasksDoNotChangeTheOtherOutputs) {
  const auto check = [&](const Operator& op, const harness::OperatorCases& cases, const Traits&) {
    const int mask = MaskOf(op);
    for (const Case& row : cases.cases) {
      if (row.Has("large") || row.Has("alias") || std::strstr(row.attributes, "mask=")) continue;
      for (const TypeChoice& types : cases.types) {
        if (!types.bench) continue;
        const CallSpec spec = harness::MakeCall(op.contract, cases, row, types).spec;
        for (const Data data : kBoth) CheckMasks(op, mask, spec, data);
        ASSERT_FALSE(HasFailure()) << row.name << " " << types.label;
      }
    }
  };
  ForEachOperatorThat("has a mask", [](const Operator& op) { return MaskOf(op) >= 0; }, check);
}

}  // namespace
}  // namespace anyacl
