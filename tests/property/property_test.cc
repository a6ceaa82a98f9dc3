// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What must hold whatever the numbers are: layouts, aliases, threads and repetition do not change a
// bit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "cpu/parallel.h"
#include "harness/call.h"
#include "harness/cases.h"
#include "harness/data.h"
#include "harness/session.h"
#include "ops/operators.h"
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
using Random = std::mt19937_64;

// The properties an operator has beyond those of all.
struct Traits {
  const char* op;
  std::vector<const char*> linear_in;  // outputs are linear in these inputs taken together
  bool elementwise;  // every output element depends on the input elements at its place
};
const Traits kTraits[] = {
    {"aclnnEluBackward", {"gradOutput"}, true},
};

const Traits& TraitsOf(const Operator& op) {
  for (const Traits& t : kTraits) {
    if (std::strcmp(t.op, op.contract.op()) == 0) return t;
  }
  throw std::out_of_range(std::string("no traits for ") + op.contract.op());
}

int64_t Below(Random& random, int64_t n) { return static_cast<int64_t>(random() % n); }

// Any rank, but never many elements.
Dims RandomDims(Random& random, int max_rank = 5) {
  Dims dims;
  const int rank = static_cast<int>(Below(random, max_rank + 1));
  int64_t left = 600;
  for (int i = 0; i < rank; ++i) {
    dims.push_back(1 + Below(random, std::min<int64_t>(left, 7)));
    left /= dims[i];
  }
  return dims;
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

// Results of all outputs, one behind the other.
Bytes ResultsOf(const Call& call) {
  Bytes all;
  for (int arg : call.Outputs()) {
    const Bytes bytes = call.Elements(arg);
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
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

// Calls visit(op, cases, traits) for every operator.
template <class Visit>
void ForEachOperator(Visit&& visit) {
  for (const Operator* op : Operators()) {
    visit(*op, harness::CasesOf(op->contract.op()), TraitsOf(*op));
  }
}

class PropertyTest : public testing::Test {
 protected:
  void TearDown() override { cpu::SetMaxThreads(0); }

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

  CallSpec RandomCall(const harness::OperatorCases& cases, const TypeChoice& types,
                      const Dims& dims) {
    harness::Attributes attributes(Below(random_, 2) ? "" : cases.cases[0].attributes);
    return cases.make(dims, types.dtypes, attributes);
  }

  harness::Session session_;
  Random random_{20240607};  // fixed: a failure comes back
};

// ---- the numbers ----

TEST_F(PropertyTest, LinearInTheGradient) {
  ForEachOperator(
      [&](const Operator& op, const harness::OperatorCases& cases, const Traits& traits) {
        for (const Case& row : cases.cases) {
          if (!row.Has("small") || row.Has("alias")) continue;
          const auto results = [&](double a, double b) {
            Call call(op, harness::MakeCall(op.contract, cases, row, cases.types[0]),
                      {.data = Data::kExact});
            for (const char* name : traits.linear_in) {
              const int arg = op.contract.ArgIndex(name);
              std::vector<double> first = call.Operand(arg);
              // Multiples of 1/4 of moderate size: their sums are exact in every dtype of the
              // cases.
              for (size_t i = 0; i < first.size(); ++i) {
                first[i] = a * harness::Generate(Data::kExact, 7, i) +
                           b * harness::Generate(Data::kExact, 8, i);
              }
              call.SetInput(arg, first);
            }
            Run(call);
            return call.Values(call.Outputs()[0]);
          };
          const auto one = results(1, 0), other = results(0, 1), sum = results(1, 1),
                     scaled = results(-4, 0);
          for (size_t i = 0; i < one.size(); ++i) {
            const double bound = 8 * 0x1p-24 * (std::fabs(one[i]) + std::fabs(other[i]));
            ASSERT_NEAR(sum[i], one[i] + other[i], bound) << row.name << " element " << i;
            ASSERT_EQ(scaled[i], -4 * one[i])
                << row.name << " element " << i;  // a power of two is exact
          }
        }
      });
}

// ---- layouts ----

TEST_F(PropertyTest, StridedEqualsContiguous) {
  ForEachOperator([&](const Operator& op, const harness::OperatorCases& cases, const Traits&) {
    for (const TypeChoice& types : cases.types) {
      for (int round = 0; round < 40; ++round) {
        CallSpec spec = RandomCall(cases, types, RandomDims(random_, 8));
        for (size_t i = 0; i < spec.args.size(); ++i) {
          const contract::Arg& arg = op.contract.args()[i];
          if (arg.is_tensor()) {
            RandomLayout(random_, arg.kind == contract::ArgKind::kOutput, &spec.args[i].tensor);
          }
        }
        Call call(op, spec, {.data = Data::kHostile, .seed = random_()});
        const Bytes strided = Run(call);
        ASSERT_EQ(strided, DenseResults(call)) << Describe(call);
      }
    }
  });
}

// Tensors that are dense in one common order of the axes need no scratch memory, whichever order it
// is.
TEST_F(PropertyTest, ACommonDenseOrderNeedsNoWorkspace) {
  ForEachOperator(
      [&](const Operator& op, const harness::OperatorCases& cases, const Traits& traits) {
        if (!traits.elementwise) return;
        for (const TypeChoice& types : cases.types) {
          for (int round = 0; round < 10; ++round) {
            CallSpec spec = RandomCall(cases, types, RandomDims(random_, 6));
            const std::vector<int> order = RandomOrder(random_, spec.args[0].tensor.rank());
            for (size_t i = 0; i < spec.args.size(); ++i) {
              if (!op.contract.args()[i].is_tensor()) continue;
              SetStrides(
                  &spec.args[i].tensor, order, [] { return 1; }, Below(random_, 5));
            }
            Call call(op, spec, {.data = Data::kHostile});
            const Bytes result = Run(call);
            EXPECT_EQ(call.workspace_size(), 0u) << Describe(call);
            ASSERT_EQ(result, DenseResults(call)) << Describe(call);
          }
        }
      });
}

TEST_F(PropertyTest, MisalignedMemory) {
  ForEachOperator([&](const Operator& op, const harness::OperatorCases& cases, const Traits&) {
    for (const TypeChoice& types : cases.types) {
      // The largest element of the call: every address stays a multiple of its own size.
      size_t size = 1;
      for (DType t : types.dtypes) size = std::max(size, SizeOf(t));
      for (const Case& row : cases.cases) {
        if (!row.Has("small")) continue;
        const CaseCall made = harness::MakeCall(op.contract, cases, row, types);
        Call aligned(op, made, {.data = Data::kHostile});
        const Bytes expected = Run(aligned);
        for (size_t elements : {1, 3, 7}) {
          Call call(op, made, {.data = Data::kHostile, .shift = elements * size});
          ASSERT_EQ(Run(call), expected)
              << row.name << " " << types.label << " off by " << elements;
        }
      }
    }
  });
}

TEST_F(PropertyTest, EmptyTensorsOfEveryRank) {
  ForEachOperator([&](const Operator& op, const harness::OperatorCases& cases,
                      const Traits& traits) {
    if (!traits.elementwise) return;
    for (const TypeChoice& types : cases.types) {
      for (int rank = 1; rank <= 8; ++rank) {
        for (int zero = 0; zero < rank; ++zero) {
          Dims dims;
          for (int i = 0; i < rank; ++i) dims.push_back(i == zero ? 0 : i + 1);
          Call call(op, RandomCall(cases, types, dims));
          EXPECT_EQ(Run(call).size(), 0u);
          EXPECT_EQ(call.workspace_size(), 0u);
          for (int arg : call.Outputs()) {  // no memory at all is as good
            auto* const tensor = static_cast<aclTensor*>(const_cast<void*>(call.raw()[arg].handle));
            EXPECT_EQ(aclSetRawTensorAddr(tensor, nullptr), 0);
          }
          EXPECT_EQ(call.Execute(session_.stream()), 0);
        }
      }
    }
  });
}

// ---- aliases ----

TEST_F(PropertyTest, OutputInPlaceOfAnInput) {
  ForEachOperator(
      [&](const Operator& op, const harness::OperatorCases& cases, const Traits& traits) {
        if (!traits.elementwise) return;
        for (const TypeChoice& types : cases.types) {
          for (int round = 0; round < 30; ++round) {
            CallSpec spec = RandomCall(cases, types, RandomDims(random_));
            Call model(op, spec);
            const int output = model.Outputs()[0];
            const int input = model.Inputs()[Below(random_, model.Inputs().size())];
            if (SizeOf(spec.args[input].tensor.dtype) != SizeOf(spec.args[output].tensor.dtype))
              continue;
            RandomLayout(random_, true, &spec.args[input].tensor);
            const DType dtype = spec.args[output].tensor.dtype;
            spec.args[output].tensor = spec.args[input].tensor;
            spec.args[output].tensor.dtype = dtype;
            CaseCall made{spec, std::vector<int>(spec.args.size())};
            std::iota(made.memory_of.begin(), made.memory_of.end(), 0);
            made.memory_of[output] = input;
            Call call(op, made, {.data = Data::kHostile, .seed = random_()});
            const Bytes in_place = Run(call);
            ASSERT_EQ(in_place, DenseResults(call)) << Describe(call);
          }
        }
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

TEST_F(PropertyTest, PartialOverlapOfInputAndOutput) {
  ForEachOperator(
      [&](const Operator& op, const harness::OperatorCases& cases, const Traits& traits) {
        if (!traits.elementwise) return;
        for (const TypeChoice& types : cases.types) {
          for (int64_t shift : {-37, -3, -1, 0, 1, 2, 64}) {
            for (const bool transposed : {false, true}) {
              CallSpec spec = RandomCall(cases, types, {23, 31});
              Call model(op, spec);
              const int output = model.Outputs()[0];
              const int input = model.Inputs()[Below(random_, model.Inputs().size())];
              if (transposed) harness::SetLayout("transposed", &spec.args[output].tensor);
              Call call(op, spec, {.data = Data::kHostile, .seed = random_()});
              const Bytes expected = DenseResults(call);
              const Overlap overlap(call, input, output, shift);
              ASSERT_EQ(call.Execute(session_.stream()), 0);
              ASSERT_EQ(overlap.Result(), expected) << Describe(call) << "\n  output " << shift
                                                    << " elements behind argument " << input;
              EXPECT_EQ(overlap.CheckGuards(), "");
            }
          }
        }
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
      CallSpec spec = RandomCall(cases, cases.types[0], dims);
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
        Call call(op, harness::MakeCall(op.contract, cases, row, types), {.data = Data::kHostile});
        const Bytes expected = results(call, 1);
        for (int threads : {1, 2, 3, 16}) {
          ASSERT_TRUE(results(call, threads) == expected)
              << row.name << " " << types.label << ", " << threads << " threads";
        }
      }
    }
  });
}

}  // namespace
}  // namespace anyacl
