// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "numeric/norm_references.h"

#include <cstdint>
#include <utility>

namespace anyacl::numeric {
namespace {

using harness::Call;

DType TypeOf(const Call& call, int arg) { return call.spec().args[arg].tensor.dtype; }
bool IsGiven(const Call& call, int arg) { return !call.spec().args[arg].null; }

std::vector<Expected> Stored(const std::vector<Possible>& values, DType dtype) {
  std::vector<Expected> expected;
  expected.reserve(values.size());
  for (const Possible& value : values) expected.push_back(OneOf(value, dtype));
  return expected;
}

std::vector<Possible> Totals(const std::vector<PossibleSum>& sums) {
  std::vector<Possible> totals;
  for (const PossibleSum& sum : sums) totals.push_back(sum.Total());
  return totals;
}

// A sum divided by a count, or multiplied with the rounded 1/count.
Possible Average(const Possible& sum, int64_t count) {
  return (sum / static_cast<double>(count)).Rounded();
}

// ---- GroupNormBackward ----

class GroupNorm {
 public:
  enum { kDy, kX, kMean, kRstd, kGamma, kN, kC, kHxW, kGroup, kMask, kDx, kDgamma, kDbeta };

  explicit GroupNorm(const Call& call)
      : call_(call),
        samples_(Int(kN)),
        hxw_(Int(kHxW)),
        groups_(Int(kGroup)),
        channels_(Int(kC) / groups_),
        xhat_(channels_ * hxw_),
        dgamma_(Int(kC)),
        dbeta_(Int(kC)) {
    dx_.reserve(call.Operand(kDy).size());
    if (channels_ * hxw_ == 0) return;
    for (int64_t i = 0; i < samples_ * groups_; ++i) AddGroup(i);
  }

  std::vector<std::vector<Expected>> Results() const {
    std::vector<std::vector<Expected>> results;
    if (IsGiven(call_, kDx)) results.push_back(Stored(dx_, TypeOf(call_, kDx)));
    if (IsGiven(call_, kDgamma)) results.push_back(Stored(Totals(dgamma_), TypeOf(call_, kDgamma)));
    if (IsGiven(call_, kDbeta)) results.push_back(Stored(Totals(dbeta_), TypeOf(call_, kDbeta)));
    return results;
  }

 private:
  int64_t Int(int arg) const { return call_.spec().args[arg].integer; }
  double Gamma(int64_t c) const { return IsGiven(call_, kGamma) ? call_.Operand(kGamma)[c] : 1; }

  // The sums of a group, over its elements or over its channels: kernels do both.
  struct GroupSums {
    PossibleSum by_element, by_channel;
    Possible Total() const { return Either(by_element.Total(), by_channel.Total()); }
  };

  void AddGroup(int64_t i) {
    const int64_t size = channels_ * hxw_;
    const double mean = call_.Operand(kMean)[i], rstd = call_.Operand(kRstd)[i];
    const double* const dy = call_.Operand(kDy).data() + i * size;
    const double* const x = call_.Operand(kX).data() + i * size;
    const int64_t first = i % groups_ * channels_;
    GroupSums sum1, sum2;
    for (int64_t c = 0; c < channels_; ++c) {
      PossibleSum db, ds;
      for (int64_t k = c * hxw_; k < (c + 1) * hxw_; ++k) {
        xhat_[k] = (Possible(x[k]) - mean) * rstd;
        const Possible product = xhat_[k] * dy[k];
        db.Add(dy[k]);
        ds.Add(product);
        dbeta_[first + c].Add(dy[k]);
        dgamma_[first + c].Add(product);
        const Possible scaled = Possible(dy[k]) * Gamma(first + c);
        sum1.by_element.Add(scaled);
        sum2.by_element.Add(Either(product * Gamma(first + c), scaled * xhat_[k]));
      }
      sum1.by_channel.Add(db.Total() * Gamma(first + c));
      sum2.by_channel.Add(ds.Total() * Gamma(first + c));
    }
    const Possible s1 = sum1.Total(), s2 = sum2.Total();
    for (int64_t k = 0; k < size; ++k) {
      dx_.push_back(Gradient(Possible(dy[k]) * Gamma(first + k / hxw_), xhat_[k], s1, s2) * rstd);
    }
  }

  // gamma*dy - c1 - xhat*c2 in any order, with c1 and c2 divided before or afterwards.
  Possible Gradient(const Possible& scaled, const Possible& xhat, const Possible& s1,
                    const Possible& s2) const {
    const int64_t size = channels_ * hxw_;
    PossibleSum sum;
    sum.Add(scaled);
    sum.Add(-Average(s1, size));
    sum.Add(-(xhat * Average(s2, size)));
    return Either(sum.Total(2), scaled - Average(s1 + xhat * s2, size));
  }

  const Call& call_;
  const int64_t samples_, hxw_, groups_;
  const int64_t channels_;      // of a group
  std::vector<Possible> xhat_;  // of the group in work
  std::vector<Possible> dx_;
  std::vector<PossibleSum> dgamma_, dbeta_;
};

// ---- BatchNormElemtBackward ----

class BatchNormElemt {
 public:
  enum { kDy, kX, kMean, kInvstd, kWeight, kSumDy, kSumDyXmu, kCounter, kDx };

  explicit BatchNormElemt(const Call& call) : call_(call) {
    PossibleSum sum;
    for (const double entry : call.Operand(kCounter)) sum.Add(entry);
    count_ = sum.Total();
    const Dims& dims = call.spec().args[kX].tensor.dims;
    int64_t inner = 1;
    for (int i = 2; i < dims.rank(); ++i) inner *= dims[i];
    const int64_t elements = static_cast<int64_t>(call.Operand(kX).size());
    for (int64_t c = 0; c < dims[1]; ++c) channels_.push_back(ChannelOf(c));
    for (int64_t i = 0; i < elements; ++i) dx_.push_back(Gradient(i, i / inner % dims[1]));
  }

  std::vector<std::vector<Expected>> Results() const { return {Stored(dx_, TypeOf(call_, kDx))}; }

 private:
  struct Channel {
    Possible mean, mean_dy, slope, factor;
  };

  Channel ChannelOf(int64_t c) const {
    const Possible invstd = call_.Operand(kInvstd)[c];
    const Possible weight = IsGiven(call_, kWeight) ? call_.Operand(kWeight)[c] : 1;
    return {call_.Operand(kMean)[c], call_.Operand(kSumDy)[c] / count_,
            call_.Operand(kSumDyXmu)[c] / count_ * (invstd * invstd), invstd * weight};
  }

  Possible Gradient(int64_t i, int64_t c) const {
    const Channel& channel = channels_[c];
    const Possible centred = call_.Operand(kX)[i] - channel.mean;
    return ((call_.Operand(kDy)[i] - channel.mean_dy) - centred * channel.slope) * channel.factor;
  }

  const Call& call_;
  Possible count_;
  std::vector<Channel> channels_;
  std::vector<Possible> dx_;
};

// ---- RmsNormGrad ----

class RmsNorm {
 public:
  enum { kDy, kX, kRstd, kGamma, kDx, kDgamma };

  explicit RmsNorm(const Call& call)
      : call_(call),
        rows_(static_cast<int64_t>(call.Operand(kRstd).size())),
        columns_(static_cast<int64_t>(call.Operand(kGamma).size())),
        u_(columns_),
        scaled_(columns_),
        dgamma_(columns_) {
    for (int64_t i = 0; i < rows_ && columns_ > 0; ++i) AddRow(i);
  }

  // A sum over no rows is NaN: the newest product does so.
  std::vector<std::vector<Expected>> Results() const {
    const std::vector<Possible> nothing(columns_, Possible::OnlyNan());
    return {Stored(dx_, TypeOf(call_, kDx)),
            Stored(rows_ == 0 ? nothing : Totals(dgamma_), TypeOf(call_, kDgamma))};
  }

 private:
  void AddRow(int64_t i) {
    const double rstd = call_.Operand(kRstd)[i];
    const double* const dy = call_.Operand(kDy).data() + i * columns_;
    const double* const x = call_.Operand(kX).data() + i * columns_;
    PossibleSum sum;
    for (int64_t j = 0; j < columns_; ++j) {
      u_[j] = Possible(x[j]) * rstd;
      scaled_[j] = Possible(dy[j]) * call_.Operand(kGamma)[j];
      sum.Add(scaled_[j] * u_[j]);
      dgamma_[j].Add(u_[j] * dy[j]);
    }
    const Possible mean = Average(sum.Total(), columns_);
    for (int64_t j = 0; j < columns_; ++j) dx_.push_back((scaled_[j] - u_[j] * mean) * rstd);
  }

  const Call& call_;
  const int64_t rows_, columns_;
  std::vector<Possible> u_, scaled_;  // of the row in work
  std::vector<Possible> dx_;
  std::vector<PossibleSum> dgamma_;
};

}  // namespace

std::vector<std::vector<Expected>> GroupNormBackwardReference(const Call& call) {
  return GroupNorm(call).Results();
}

std::vector<std::vector<Expected>> BatchNormElemtBackwardReference(const Call& call) {
  return BatchNormElemt(call).Results();
}

std::vector<std::vector<Expected>> RmsNormGradReference(const Call& call) {
  return RmsNorm(call).Results();
}

}  // namespace anyacl::numeric
