// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What the mathematics says of the numbers, whatever they are: results are linear in the gradient, and
// the gradient of a normalisation neither moves the mean of what it normalises nor its length. How far
// a result may be off is what the references of the numeric tests say, element by element.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "harness/call.h"
#include "harness/cases.h"
#include "harness/data.h"
#include "harness/session.h"
#include "numeric/references.h"
#include "operators_with_cases.h"

namespace anyacl {
namespace {

using harness::Call;
using harness::Case;
using harness::Data;

constexpr double kUnit = 0x1p-24;  // of the statistics, which are stored as FLOAT32

// One set of elements that are normalised together: xhat = (x - mean) * rstd, and with g = gamma * dy
//
//   dx = rstd * (g - c1 - xhat * c2),   c1 = avg(g),   c2 = avg(g * xhat)   (avg over the set)
//
// RmsNormGrad has neither mean nor c1.
struct NormalSet {
  std::vector<int64_t> members;
  double mean, rstd;
  std::vector<double> xhat, g;
  bool centred;
  bool stored = false;

  double Size() const { return static_cast<double>(members.size()); }
  double C1() const {
    double sum = 0;
    for (double v : g) sum += v;
    return sum / Size();
  }
  double C2() const {
    double sum = 0;
    for (size_t i = 0; i < g.size(); ++i) sum += g[i] * xhat[i];
    return sum / Size();
  }
};

// Statistics of the members of x, as double; without eps, so that xhat has length sqrt(M).
NormalSet SetOf(const std::vector<double>& x, std::vector<int64_t> members, bool centred) {
  NormalSet set{std::move(members), 0, 0, {}, {}, centred};
  double squares = 0;
  for (int64_t i : set.members) set.mean += centred ? x[i] / set.Size() : 0;
  for (int64_t i : set.members) squares += (x[i] - set.mean) * (x[i] - set.mean);
  set.rstd = 1 / std::sqrt(squares / set.Size());
  return set;
}

// xhat and g with the statistics as the call stores them. Vectors that are views of one element
// cannot store those of every set.
void Fill(const std::vector<double>& x, const std::vector<double>& dy, double mean, double rstd,
          const std::function<double(int64_t)>& gamma, NormalSet* set) {
  set->stored = std::fabs(mean - set->mean) <= std::fabs(set->mean) * kUnit * 1.01 &&
                std::fabs(rstd - set->rstd) <= set->rstd * kUnit * 1.01;
  set->mean = mean;
  set->rstd = rstd;
  for (int64_t i : set->members) {
    set->xhat.push_back((x[i] - mean) * rstd);
    set->g.push_back(gamma(i) * dy[i]);
  }
}

// Gives a call the statistics of its own x and tells which elements belong together.
using Normalise = std::vector<NormalSet> (*)(Call& call);

std::vector<int64_t> Range(int64_t first, int64_t count) {
  std::vector<int64_t> members;
  for (int64_t i = 0; i < count; ++i) members.push_back(first + i);
  return members;
}

// Stores the mean and the reciprocal deviation of every set; mean_arg < 0: there is none.
void StoreStatistics(const std::vector<NormalSet>& sets, int mean_arg, int rstd_arg, Call* call) {
  std::vector<double> means, rstds;
  for (const NormalSet& set : sets) {
    means.push_back(set.mean);
    rstds.push_back(set.rstd);
  }
  if (mean_arg >= 0) call->SetInput(mean_arg, means);
  call->SetInput(rstd_arg, rstds);
}

std::vector<NormalSet> NormaliseGroups(Call& call) {
  enum { kDy, kX, kMean, kRstd, kGamma, kN, kC, kHxW, kGroup };
  const auto integer = [&](int arg) { return call.spec().args[arg].integer; };
  const int64_t size = integer(kC) / integer(kGroup) * integer(kHxW);
  std::vector<NormalSet> sets;
  for (int64_t i = 0; i < integer(kN) * integer(kGroup); ++i) {
    sets.push_back(SetOf(call.Operand(kX), Range(i * size, size), true));
  }
  StoreStatistics(sets, kMean, kRstd, &call);
  const auto gamma = [&](int64_t i) {
    return call.spec().args[kGamma].null ? 1
                                         : call.Operand(kGamma)[i / integer(kHxW) % integer(kC)];
  };
  for (size_t i = 0; i < sets.size(); ++i) {
    Fill(call.Operand(kX), call.Operand(kDy), call.Operand(kMean)[i], call.Operand(kRstd)[i], gamma,
         &sets[i]);
  }
  return sets;
}

std::vector<NormalSet> NormaliseChannels(Call& call) {
  enum { kDy, kX, kMean, kInvstd, kWeight, kSumDy, kSumDyXmu, kCounter };
  const std::vector<double>& x = call.Operand(kX);
  const std::vector<double>& dy = call.Operand(kDy);
  const Dims& dims = call.spec().args[kX].tensor.dims;
  int64_t inner = 1;
  for (int i = 2; i < dims.rank(); ++i) inner *= dims[i];
  std::vector<NormalSet> sets;
  for (int64_t c = 0; c < dims[1]; ++c) {
    std::vector<int64_t> members;
    for (int64_t n = 0; n < dims[0]; ++n) {
      for (int64_t i : Range((n * dims[1] + c) * inner, inner)) members.push_back(i);
    }
    sets.push_back(SetOf(x, members, true));
  }
  StoreStatistics(sets, kMean, kInvstd, &call);
  std::vector<double> sum_dy, sum_dy_xmu;
  for (size_t c = 0; c < sets.size(); ++c) {
    const double mean = call.Operand(kMean)[c];
    const double weight = call.spec().args[kWeight].null ? 1 : call.Operand(kWeight)[c];
    double sum = 0, with_x = 0;
    for (int64_t i : sets[c].members) {
      sum += dy[i];
      with_x += dy[i] * (x[i] - mean);
    }
    sum_dy.push_back(sum);
    sum_dy_xmu.push_back(with_x);
    Fill(
        x, dy, mean, call.Operand(kInvstd)[c], [&](int64_t) { return weight; }, &sets[c]);
  }
  call.SetInput(kSumDy, sum_dy);
  call.SetInput(kSumDyXmu, sum_dy_xmu);
  // The elements of a channel, as if several ranks had had them.
  std::vector<double> counts(call.Operand(kCounter).size(), 1);
  counts[0] = sets[0].Size() - static_cast<double>(counts.size() - 1);
  call.SetInput(kCounter, counts);
  return sets;
}

std::vector<NormalSet> NormaliseRows(Call& call) {
  enum { kDy, kX, kRstd, kGamma };
  const int64_t columns = static_cast<int64_t>(call.Operand(kGamma).size());
  std::vector<NormalSet> sets;
  for (size_t i = 0; i < call.Operand(kRstd).size(); ++i) {
    sets.push_back(SetOf(call.Operand(kX), Range(i * columns, columns), false));
  }
  StoreStatistics(sets, -1, kRstd, &call);
  for (size_t i = 0; i < sets.size(); ++i) {
    Fill(
        call.Operand(kX), call.Operand(kDy), 0, call.Operand(kRstd)[i],
        [&](int64_t k) { return call.Operand(kGamma)[k % columns]; }, &sets[i]);
  }
  return sets;
}

struct Traits {
  const char* op;
  std::vector<const char*> linear_in;  // outputs are linear in these inputs taken together
  const char* divisor;                 // an input whose sum must not be 0, or null
  Normalise normalise;                 // null: no normalisation
};
const Traits kTraits[] = {
    {"aclnnEluBackward", {"gradOutput"}, nullptr, nullptr},
    {"aclnnGroupNormBackward", {"gradOut"}, nullptr, NormaliseGroups},
    {"aclnnBatchNormElemtBackward", {"gradOut", "sumDy", "sumDyXmu"}, "counter", NormaliseChannels},
    {"aclnnRmsNormGrad", {"dy"}, nullptr, NormaliseRows},
};

const Traits& TraitsOf(const Operator& op) {
  for (const Traits& t : kTraits) {
    if (std::strcmp(t.op, op.contract.op()) == 0) return t;
  }
  throw std::out_of_range(std::string("no traits for ") + op.contract.op());
}

// Calls visit(op, cases, traits, row) for every row that is small and plain.
template <class Visit>
void ForEachRow(Visit&& visit) {
  for (const Operator* op : OperatorsWithCases()) {
    const harness::OperatorCases& cases = harness::CasesOf(op->contract.op());
    for (const Case& row : cases.cases) {
      if (!row.Has("small") || row.Has("alias") || row.Has("empty")) continue;
      SCOPED_TRACE(std::string(op->contract.op()) + " \"" + row.name + "\"");
      visit(*op, cases, TraitsOf(*op), row);
    }
  }
}

class IdentityTest : public testing::Test {
 protected:
  void Run(Call& call) { ASSERT_EQ(call.Execute(session_.stream()), 0) << aclGetRecentErrMsg(); }

  harness::Session session_;
};

struct Outcome {
  std::vector<std::vector<double>> values;
  std::vector<std::vector<numeric::Expected>> expected;
};

TEST_F(IdentityTest, LinearInTheGradient) {
  int64_t compared = 0;
  ForEachRow([&](const Operator& op, const harness::OperatorCases& cases, const Traits& traits,
                 const Case& row) {
    // The gradients a*p + b*q with fixed p and q: multiples of 1/4 whose sums are exact.
    const auto outcome = [&](double a, double b) {
      Call call(op, harness::MakeCall(op.contract, cases, row, cases.types[0]),
                {.data = Data::kExact});
      for (const char* name : traits.linear_in) {
        const int arg = op.contract.ArgIndex(name);
        std::vector<double> values(call.Operand(arg).size());
        for (size_t i = 0; i < values.size(); ++i) {
          values[i] =
              a * harness::Generate(Data::kExact, 7, i) + b * harness::Generate(Data::kExact, 8, i);
        }
        call.SetInput(arg, values);
      }
      if (traits.divisor) {
        const int arg = op.contract.ArgIndex(traits.divisor);
        call.SetInput(arg, std::vector<double>(call.Operand(arg).size(), 3));
      }
      Run(call);
      Outcome result;
      for (int arg : call.Outputs()) result.values.push_back(call.Values(arg));
      result.expected = numeric::ReferenceOf(op.contract.op())(call);
      return result;
    };
    const Outcome one = outcome(1, 0), other = outcome(0, 1), sum = outcome(1, 1),
                  scaled = outcome(-4, 0);
    for (size_t out = 0; out < one.values.size(); ++out) {
      for (size_t i = 0; i < one.values[out].size(); ++i) {
        const double a = one.values[out][i], b = other.values[out][i];
        // Each of the three is as far off as its reference allows, and is rounded once.
        const double bound = one.expected[out][i].Tolerance() + other.expected[out][i].Tolerance() +
                             sum.expected[out][i].Tolerance() +
                             4 * kUnit * (std::fabs(a) + std::fabs(b));
        ASSERT_NEAR(sum.values[out][i], a + b, bound) << "output " << out << " element " << i;
        ASSERT_EQ(scaled.values[out][i], -4 * a) << "a power of two is exact, element " << i;
        ++compared;
      }
    }
  });
  EXPECT_GT(compared, 1000);
}

// With the true statistics the sums below are 0:
//
//   sum dx      = rstd * (M*c1 - M*c1 - c2 * sum xhat)             (not for RmsNormGrad)
//   sum dx*xhat = rstd * (M*c2 - c1 * sum xhat - c2 * sum xhat^2)
//
// because sum xhat = 0 and sum xhat^2 = M. Statistics that are rounded to FLOAT32 leave
//
//   |sum xhat| <= M * s,   s = rstd*|mean|*u,     |sum xhat^2 - M| <= M * (2u + s^2)
//
// and sums that are inputs are off by u themselves, which adds M*|c1|*u and M*|c2|*u. Every dx is off by
// its tolerance.
struct Sums {
  double dx = 0, dx_bound = 0, dx_size = 0;
  double along = 0, along_bound = 0, along_size = 0;
};

Sums SumsOf(const NormalSet& set, const std::vector<double>& dx,
            const std::vector<numeric::Expected>& expected) {
  Sums sums;
  for (size_t k = 0; k < set.members.size(); ++k) {
    const int64_t i = set.members[k];
    const double tolerance = expected[i].Tolerance() + kUnit * std::fabs(dx[i]);
    sums.dx += dx[i];
    sums.dx_bound += tolerance;
    sums.dx_size += std::fabs(dx[i]);
    sums.along += dx[i] * set.xhat[k];
    sums.along_bound += tolerance * std::fabs(set.xhat[k]);
    sums.along_size += std::fabs(dx[i] * set.xhat[k]);
  }
  const double c1 = set.centred ? std::fabs(set.C1()) : 0, c2 = std::fabs(set.C2());
  const double s = set.rstd * std::fabs(set.mean) * kUnit;
  const double unit = set.rstd * set.Size() * 1.01;
  sums.dx_bound += unit * (c2 * s + c1 * kUnit);
  sums.along_bound += unit * (c1 * s + c2 * (3 * kUnit + s * s));
  return sums;
}

TEST_F(IdentityTest, TheGradientOfANormalisationKeepsMeanAndLength) {
  int64_t sets_checked = 0, telling = 0;
  ForEachRow([&](const Operator& op, const harness::OperatorCases& cases, const Traits& traits,
                 const Case& row) {
    if (!traits.normalise) return;
    for (const Data data : {Data::kRandom, Data::kOffset}) {
      Call call(op, harness::MakeCall(op.contract, cases, row, cases.types[0]), {.data = data});
      if (call.Outputs().empty()) return;
      const int dx_arg = call.Outputs()[0];
      const Dims& dims = call.spec().args[op.contract.ArgIndex(traits.linear_in[0])].tensor.dims;
      if (!(call.spec().args[dx_arg].tensor.dims == dims)) return;  // dx is not wanted
      const std::vector<NormalSet> sets = traits.normalise(call);
      Run(call);
      const std::vector<double> dx = call.Values(dx_arg);
      const auto expected = numeric::ReferenceOf(op.contract.op())(call)[0];
      for (const NormalSet& set : sets) {
        if (!set.stored) continue;  // also: one element, or equal ones
        const Sums sums = SumsOf(set, dx, expected);
        if (set.centred) {
          ASSERT_LE(std::fabs(sums.dx), sums.dx_bound) << harness::Name(data);
        }
        ASSERT_LE(std::fabs(sums.along), sums.along_bound) << harness::Name(data);
        ++sets_checked;
        telling += sums.along_bound < 0.02 * sums.along_size;
      }
    }
  });
  EXPECT_GT(sets_checked, 1000);
  EXPECT_GT(telling, sets_checked / 2) << "bounds that anything meets say nothing";
}

}  // namespace
}  // namespace anyacl
