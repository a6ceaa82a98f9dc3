// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The words of the table language about lists, promotion, broadcasting and attributes, each on one table: the call it
// accepts, the smallest change it refuses with code and sentence, that FindViolations comes upon such a change by itself,
// and its line in the documentation.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "contract/contract.h"
#include "contract/render.h"
#include "contract/violations.h"

namespace anyacl::contract {
namespace {

enum { kA, kB, kOut, kXs, kYs, kS, kSs, kAxis, kAxes, kDType, kFloats, kName, kFlag, kSums, kUnused };

Tensor TensorOf(Dims dims, DType dtype = DType::kF32) {
  Tensor t;
  t.dtype = dtype;
  t.dims = t.storage = dims;
  t.strides = ContiguousStrides(dims);
  return t;
}

Table ToyTable(std::vector<Rule> rules, Deduction deduce = {.from = {"a", "b"}, .out = "out"}) {
  return {.op = "aclnnToy",
          .stem = "toy",
          .summary = "Plays.",
          .formulas = {},
          .args = {Input("a", ""),
                   Input("b", "").Optional(),
                   Output("out", ""),
                   {"xs", ArgKind::kInputList},
                   {"ys", ArgKind::kOutputList},
                   ScalarArg("s", "").Optional(),
                   {"ss", ArgKind::kScalarList},
                   Int("axis", ""),
                   {"axes", ArgKind::kIntArray},
                   Int("dtype", ""),
                   {"floats", ArgKind::kFloatArray},
                   {"name", ArgKind::kString},
                   Bool("flag", ""),
                   Output("sums", ""),
                   Input("unused", "").Optional()},
          .sizes = {{"N", "a", 0}},
          .deduce = std::move(deduce),
          .rules = std::move(rules)};
}

// a [2, 3], b [3], out [2, 3], xs and ys [2], [2, 2] and [3], s 1.5, ss {1, 2, 3}, axis 1, axes {0, -1}, dtype FLOAT,
// sums [2], unused null
CallSpec Valid() {
  CallSpec call;
  call.args.resize(15);
  call.args[kA].tensor = TensorOf({2, 3});
  call.args[kB].tensor = TensorOf({3});
  call.args[kOut].tensor = TensorOf({2, 3});
  call.args[kXs].tensors = call.args[kYs].tensors = {TensorOf({2}), TensorOf({2, 2}), TensorOf({3})};
  call.args[kS].scalar = Scalar::OfFloat(1.5f);
  for (float v : {1, 2, 3}) call.args[kSs].scalars.push_back(Scalar::OfFloat(v));
  call.args[kAxis].integer = 1;
  call.args[kAxes].ints.values = {0, -1};
  call.args[kFloats].floats.values = {1, 2};
  call.args[kName].text = "none";
  call.args[kFlag].flag = true;
  call.args[kSums].tensor = TensorOf({2});
  call.args[kUnused].null = true;
  return call;
}

using Change = std::function<void(CallSpec&)>;

CallSpec With(const Change& change) {
  CallSpec call = Valid();
  change(call);
  return call;
}

Change TypeOf(int arg, DType dtype) {
  return [=](CallSpec& c) { c.args[arg].tensor.dtype = dtype; };
}
Change Shape(int arg, Dims dims) {
  return [=](CallSpec& c) { c.args[arg].tensor = TensorOf(dims, c.args[arg].tensor.dtype); };
}
Change Absent(int arg) {
  return [=](CallSpec& c) { c.args[arg].null = true; };
}
Change Number(int arg, int64_t value) {
  return [=](CallSpec& c) { c.args[arg].integer = value; };
}
Change Axes(std::vector<int64_t> values) {
  return [=](CallSpec& c) { c.args[kAxes].ints.values = values; };
}
Change Both(const Change& one, const Change& other) {
  return [=](CallSpec& c) {
    one(c);
    other(c);
  };
}
void Nothing(CallSpec&) {}

Status Checked(const Contract& contract, const Change& change, Product product = Product::kAscend950) {
  const CallSpec call = With(change);
  return contract.Check(call.Bind(contract), product);
}

std::string DocumentationOf(const Contract& contract) { return RenderMarkdown(contract, "aclnnop/aclnn_toy.h", {}); }

struct Word {
  const char* name;  // of the test
  std::vector<Rule> rules;  // the last one is tested; those before it hold
  Change breaks;
  std::string sentence;
  std::string line;  // of the documentation
  int32_t code = 161002;
  Deduction deduce = {.from = {"a", "b"}, .out = "out"};
};

const std::vector<TypeRow> kFloats16And32 = {{{DType::kF32}}, {{DType::kF16}}, {{DType::kBF16}, kNewer}};

std::vector<Word> Words() {
  const auto entry = [](int list, int item, auto&& change) -> Change {
    return [=](CallSpec& c) { change(c.args[list].tensors[item]); };
  };
  const Deduction with_scalar{.from = {"a", "s"}, .out = "out"};
  const Deduction of_lists{.from = {"xs", "ss"}};
  const std::string on = std::string(" on ") + Name(Product::kAscend950);
  return {
      {"NotNullOfAList", {NotNull("xs")}, Absent(kXs), "xs must not be null", "xs must not be null", 161001},
      {"OneGiven",
       {OneGiven({"b", "s"})},
       Both(Absent(kB), Absent(kS)),
       "b and s must not all be null",
       "b and s must not all be null",
       161001},
      {"DTypesOfAList",
       {DTypes("xs", kFloats16And32)},
       entry(kXs, 1, [](Tensor& t) { t.dtype = DType::kI32; }),
       "xs must be FLOAT, FLOAT16 or BF16" + on + ", got INT32 in xs[1]",
       "dtype of xs must be one of those listed"},
      {"SameDTypeOfLists",
       {SameDType("ys", "xs")},
       entry(kYs, 2, [](Tensor& t) { t.dtype = DType::kF16; }),
       "ys must have the dtype of xs, got ys[2] FLOAT16 and xs[2] FLOAT",
       "ys must have the dtype of xs"},
      {"SameShapeOfLists",
       {SameShape("ys", "xs")},
       entry(kYs, 1, [](Tensor& t) { t = TensorOf({4}); }),
       "ys must have the shape of xs, got ys[1] [4] and xs[1] [2, 2]",
       "ys must have the shape of xs"},
      {"RankOfAList",
       {Rank("xs", 0, 8)},
       entry(kXs, 2, [](Tensor& t) { t = TensorOf({1, 1, 1, 1, 1, 1, 1, 1, 1}); }),
       "xs must have at most 8 dims, got shape [1, 1, 1, 1, 1, 1, 1, 1, 1] with 9",
       "xs must have at most 8 dims"},
      {"LengthOfAList",
       {Length("xs", 3)},
       [](CallSpec& c) { c.args[kXs].tensors.clear(); },
       "xs must have 3 entries, got 0",
       "xs must have 3 entries"},
      {"SameLength",
       {SameLength("ys", "xs")},
       [](CallSpec& c) { c.args[kYs].tensors.pop_back(); },
       "ys must have as many entries as xs, got 2 and 3",
       "ys must have as many entries as xs"},
      {"SameLengthOfScalars",
       {SameLength("ss", "xs")},
       [](CallSpec& c) { c.args[kSs].scalars.pop_back(); },
       "ss must have as many entries as xs, got 2 and 3",
       "ss must have as many entries as xs"},
      {"Deduces",
       {Deduces(kFloats16And32)},
       Both(TypeOf(kA, DType::kI32), TypeOf(kB, DType::kI64)),
       "a and b must have dtypes that are computed together in FLOAT, FLOAT16 or BF16" + on + ", got a INT32 and b INT64",
       "a and b must have dtypes that are computed together in one of those listed"},
      {"DeducedConverts",
       {DeducedConverts("out")},
       TypeOf(kOut, DType::kI32),
       "out must have a dtype that FLOAT converts to, which a FLOAT and b FLOAT are computed in, got INT32",
       "out must have a dtype that the dtype of a with b converts to"},
      {"DeducedStaysComplex",
       {DeducedStaysComplex("out")},
       TypeOf(kB, DType::kC64),
       "out must be complex where a or b is, got FLOAT for a FLOAT and b COMPLEX64",
       "out must be complex where a or b is"},
      {"ScalarStaysComplex",
       {ScalarStaysComplex("s")},
       [](CallSpec& c) { c.args[kS].scalar = Scalar::Of(DType::kC64, 1); },
       "s must be real where a and b are computed in real numbers, got COMPLEX64 for FLOAT",
       "s must be real where a and b are computed in real numbers"},
      {"ScalarFits",
       {ScalarFits("s")},
       [](CallSpec& c) { c.args[kS].scalar = Scalar::Of(DType::kC64, 1); },
       "s must convert to the dtype that a and b are computed in, got COMPLEX64 for FLOAT",
       "s must convert to the dtype that a and b are computed in"},
      {"ScalarFitsOfAList",
       {ScalarFits("ss")},
       [](CallSpec& c) { c.args[kSs].scalars[2] = Scalar::Of(DType::kC64, 1); },
       "ss must convert to the dtype that xs are computed in, got COMPLEX64 in ss[2] for FLOAT",
       "ss must convert to the dtype that xs are computed in",
       161002,
       {.from = {"xs"}}},
      {"ScalarDTypes",
       {ScalarDTypes("s", kFloats16And32)},
       [](CallSpec& c) { c.args[kS].scalar = Scalar::Of(DType::kF64, 1); },
       "s must be FLOAT, FLOAT16 or BF16" + on + ", got DOUBLE",
       "dtype of s must be one of those listed"},
      {"ScalarDTypesOfAList",
       {ScalarDTypes("ss", kFloats16And32)},
       [](CallSpec& c) { c.args[kSs].scalars[1] = Scalar::Of(DType::kC64, 1); },
       "ss must be FLOAT, FLOAT16 or BF16" + on + ", got COMPLEX64 in ss[1]",
       "dtype of ss must be one of those listed"},
      {"ScalarConvertsOfAList",
       {ScalarConverts("ss", DType::kF32)},
       [](CallSpec& c) { c.args[kSs].scalars[0] = Scalar::Of(DType::kC64, 1); },
       "ss must convert to FLOAT, got COMPLEX64 in ss[0]",
       "ss must convert to FLOAT"},
      {"DeducesWithAScalar",
       {Deduces({{{DType::kF32}}})},
       [](CallSpec& c) { c.args[kS].scalar = Scalar::Of(DType::kC64, 1); },
       "a and s must have dtypes that are computed together in FLOAT" + on + ", got a FLOAT and s COMPLEX64",
       "a and s must have dtypes that are computed together in one of those listed",
       161002,
       with_scalar},
      {"DeducesOfLists",
       {Deduces({{{DType::kF32}}})},
       [](CallSpec& c) { c.args[kSs].scalars[2] = Scalar::Of(DType::kC64, 1); },
       "xs and ss must have dtypes that are computed together in FLOAT" + on + ", got xs[2] FLOAT and ss[2] COMPLEX64",
       "xs and ss must have dtypes that are computed together in one of those listed",
       161002,
       of_lists},
      {"BroadcastOfOthers",
       {Broadcast("out", {"a", "b"})},
       Shape(kB, {2}),
       "a and b must have shapes that broadcast, got a [2, 3] and b [2]",
       "out must have the shape that a and b broadcast to"},
      {"BroadcastResult",
       {Broadcast("out", {"a", "b"})},
       Shape(kOut, {1, 2, 3}),
       "out must have the shape [2, 3] that a [2, 3] and b [3] broadcast to, got [1, 2, 3]",
       "out must have the shape that a and b broadcast to"},
      {"SameFormat",
       {SameFormat({"a", "b", "out"})},
       [](CallSpec& c) { c.args[kOut].tensor.format = Format::kHWCN; },
       "a and b and out must have the same format, got a ND and b ND and out HWCN",
       "a and b and out must have the same format"},
      {"PlainStorage",
       {PlainStorage("a")},
       [](CallSpec& c) {
         c.args[kA].tensor.format = Format::kFractalNZ;
         c.args[kA].tensor.storage = {1, 1, 16, 16};
       },
       "a must have a storage of its shape when its format is private, got FRACTAL_NZ with storage [1, 1, 16, 16] and shape [2, 3]",
       "a must have a storage of its shape when its format is private"},
      {"OneOf", {OneOf("axis", {0, 1, 2})}, Number(kAxis, 3), "axis must be one of 0, 1, 2, got 3", "axis must be one of 0, 1, 2"},
      {"Dim", {Dim("axis", "a")}, Number(kAxis, -3), "axis must be an axis of a, got -3 for shape [2, 3]", "axis must be an axis of a"},
      {"DimsBeyond",
       {DimsOf("axes", "a")},
       Axes({0, 2}),
       "axes must be axes of a, none twice, got [0, 2] for shape [2, 3]",
       "axes must be axes of a, none twice"},
      {"DimsTwice",
       {DimsOf("axes", "a")},
       Axes({1, -1}),
       "axes must be axes of a, none twice, got [1, -1] for shape [2, 3]",
       "axes must be axes of a, none twice"},
      {"DTypeArg",
       {DTypeArg("dtype", kFloats16And32)},
       Number(kDType, 3),
       "dtype must be FLOAT, FLOAT16 or BF16" + on + ", got INT32",
       "dtype of dtype must be one of those listed"},
      {"DTypeIs",
       {DTypeIs("out", "dtype")},
       Number(kDType, 1),
       "out must have the dtype that dtype names, got out FLOAT and dtype FLOAT16",
       "out must have the dtype that dtype names"},
      {"DTypeIsOrThatOfATensor",
       {DTypeIs("out", "dtype", "b")},
       Both(Number(kDType, -1), TypeOf(kB, DType::kF16)),
       "out must have the dtype that dtype names, or that of b when it names none, got out FLOAT and dtype DT_UNDEFINED",
       "out must have the dtype that dtype names, or that of b when it names none"},
      {"NotGiven",
       {NotGiven("unused")},
       [](CallSpec& c) {
         c.args[kUnused].null = false;
         c.args[kUnused].tensor = TensorOf({0});
       },
       "unused must be null",
       "unused must be null"},
      {"NotGivenOrEmpty",
       {NotGiven("unused").OrEmpty()},
       [](CallSpec& c) {
         c.args[kUnused].null = false;
         c.args[kUnused].tensor = TensorOf({1});
       },
       "unused must be null or empty",
       "unused must be null or empty"},
      {"Reduced",
       {Reduced("sums", "a", {"axis"})},
       Number(kAxis, 0),
       "sums must have the shape of a without the axes of axis = [3], got [2]",
       "sums must have the shape of a without the axes of axis"},
      {"ReducesElements",
       {ReducesElements("a", {"axis"})},
       Shape(kA, {2, 0}),
       "a must have elements along the axes that are reduced, got shape [2, 0]",
       "a must have elements along the axes that are reduced"},
      {"CustomAboutAList",
       {Custom("xs", "must not be empty",
               [](Values values, Product) -> std::string {
                 return values[kXs].tensors->tensors.empty() ? "must not be empty, got 0 entries" : "";
               })},
       [](CallSpec& c) { c.args[kXs].tensors.clear(); },
       "xs must not be empty, got 0 entries",
       "xs must not be empty"},
      {"WithAFlag",
       {Dim("axis", "a").If("flag")},
       Number(kAxis, 7),
       "axis must be an axis of a when flag is true, got 7 for shape [2, 3]",
       "axis must be an axis of a when flag is true"},
  };
}

TEST(Words, AcceptTheValidCallAndRefuseTheChangedOne) {
  for (const Word& word : Words()) {
    SCOPED_TRACE(word.name);
    const Contract contract(ToyTable(word.rules, word.deduce));
    const Status fine = Checked(contract, Nothing);
    EXPECT_EQ(fine.code(), 0) << fine.message();
    const Status refused = Checked(contract, word.breaks);
    EXPECT_EQ(refused.code(), word.code);
    EXPECT_EQ(refused.message(), "aclnnToy: " + word.sentence);
  }
}

TEST(Words, ViolationsAreFound) {
  for (const Word& word : Words()) {
    if (word.rules.back().kind == RuleKind::kCustom) continue;  // what they want, nobody can guess
    const Contract contract(ToyTable(word.rules, word.deduce));
    std::vector<int> unreached;
    const auto found = FindViolations(contract, Valid(), Product::kAscend950, &unreached);
    EXPECT_TRUE(unreached.empty()) << word.name << " was never broken";
    for (const Violation& v : found) {
      EXPECT_NE(contract.Check(v.call.Bind(contract), Product::kAscend950).code(), 0) << v.change;
    }
  }
}

TEST(Words, HaveALineInTheDocumentation) {
  for (const Word& word : Words()) {
    const Contract contract(ToyTable(word.rules, word.deduce));
    const std::string line = fmt::format("| {} | {} |\n", word.code, word.line);
    EXPECT_NE(DocumentationOf(contract).find(line), std::string::npos)
        << word.name << "\nwanted: " << line << "\ngot: " << DocumentationOf(contract);
  }
}

// Each word of RuleKind is tested here or in rules_test.cc, which has those of single tensors.
TEST(Words, NoneIsForgotten) {
  const std::vector<Word> words = Words();
  for (int kind = static_cast<int>(RuleKind::kDeduces); kind <= static_cast<int>(RuleKind::kReduces); ++kind) {
    EXPECT_TRUE(std::any_of(words.begin(), words.end(),
                            [&](const Word& w) { return static_cast<int>(w.rules.back().kind) == kind; }))
        << "no test of rule kind " << kind;
  }
}

// The shapes that reductions leave.
TEST(Words, ReducedShapes) {
  const auto checked = [](const Rule& rule, const Change& change) {
    return Checked(Contract(ToyTable({rule})), change).message();
  };
  const auto sums = [](Dims dims) { return Shape(kSums, dims); };
  const auto flag = [](bool value) -> Change { return [=](CallSpec& c) { c.args[kFlag].flag = value; }; };
  const Rule strict = Reduced("sums", "a", {"axes", "flag"});
  EXPECT_EQ(checked(strict, sums({1, 1})), "");
  EXPECT_EQ(checked(strict, Both(sums({}), flag(false))), "");
  EXPECT_EQ(checked(strict, Both(sums({1}), flag(false))),
            "aclnnToy: sums must have the shape of a without the axes of axes, or with 1 in their place when flag is true = [], "
            "got [1]");
  EXPECT_EQ(checked(strict, Both(sums({1, 1}), Axes({}))), "") << "no axes are all axes";
  const Rule loose = Reduced("sums", "a", {"axes", "flag"}, ShapeRule::kLoose);
  EXPECT_EQ(checked(loose, sums({1})), "");
  EXPECT_NE(checked(loose, sums({2})), "");
  EXPECT_EQ(checked(loose, Both(sums({5}), Shape(kA, {0, 3}))), "") << "an empty tensor's result is not compared";
  const Rule for_all = Reduced("sums", "a", {"axes", "flag"}, ShapeRule::kLooseForAll);
  EXPECT_NE(checked(for_all, sums({1})), "");
  EXPECT_EQ(checked(for_all, Both(sums({1}), Axes({}))), "");
  const Rule named = Reduced("sums", "a", {"axes"}, ShapeRule::kStrict, NoAxes::kAreNone);
  EXPECT_EQ(checked(named, Both(sums({2, 3}), Axes({}))), "");
  EXPECT_EQ(checked(Reduced("sums", "a", {}), sums({})), "");
}

// ---- what they must not trip over ----

TEST(Words, SayNothingAboutWhatIsAbsent) {
  const Contract contract(ToyTable({SameDType("b", "a"), ResultConverts("b", "out"), ScalarFits("s"),
                                    ScalarDTypes("s", {{{DType::kI8}}}), SameFormat({"b", "a"}),
                                    Broadcast("out", {"a", "b"}), Dim("axis", "b"), DimsOf("axes", "b"),
                                    SameLength("ss", "xs"), DTypeIs("b", "dtype"),
                                    Reduced("out", "b", {"axis"}), ReducesElements("b", {"axes"})}));
  const auto change = [](CallSpec& c) {
    c.args[kB].null = c.args[kS].null = c.args[kXs].null = true;
    c.args[kAxis].integer = 9;
    c.args[kDType].integer = 7;
  };
  const Status status = Checked(contract, change);
  EXPECT_EQ(status.code(), 0) << status.message();
}

// Lists of different lengths, and entries that are null, before any rule about that.
TEST(Words, ListsThatDoNotFitTogetherAreSafe) {
  const std::vector<Rule> rules = {DTypes("xs", {{{DType::kF32}}}), SameDType("ys", "xs"),   SameDType("xs", "ys"),
                                   ResultConverts("xs", "ys"),      ResultConverts("ys", "xs"), SameShape("xs", "ys", "N"),
                                   Rank("xs", 0, 8),                ScalarFits("ss"),        Deduces({{{DType::kF32}}}),
                                   DTypeRows({"xs", "ys"}, {{{DType::kF32, DType::kF32}}}), DeducedConverts("ys"),
                                   PublicFormat("xs"),              SameFormat({"xs", "ys"})};
  for (const Deduction& deduce : {Deduction{.from = {"xs", "ss"}}, Deduction{.from = {"ys", "xs"}}}) {
    for (const Rule& rule : rules) {
      const Contract contract(ToyTable({rule}, deduce));
      for (size_t xs : {0, 1, 3}) {
        for (size_t ys : {0, 2, 3}) {
          for (size_t ss : {0, 1, 5}) {
            const CallSpec call = With([&](CallSpec& c) {
              c.args[kXs].tensors.resize(xs, TensorOf({2}));
              c.args[kYs].tensors.resize(ys, TensorOf({2}, DType::kI8));
              c.args[kSs].scalars.resize(ss, Scalar::OfFloat(1));
            });
            const Status status = contract.Check(call.Bind(contract), Product::kAscend950);
            EXPECT_TRUE(status.ok() || !status.message().empty());
          }
        }
      }
    }
  }
}

TEST(Words, EntriesOfListsThatAreNull) {
  const Contract contract(ToyTable({NotNull("xs"), DTypes("xs", {{{DType::kF32}}})}));
  const Contract lenient(ToyTable({DTypes("xs", {{{DType::kF32}}})}));
  const CallSpec call = Valid();
  const Tensor* const entries[] = {&call.args[kXs].tensors[0], nullptr, &call.args[kXs].tensors[2]};
  const TensorSpan span{entries, -1};
  const BoundCall bound = call.Bind(contract);
  const Values all = bound;
  std::vector<Value> values(all.begin(), all.end());
  values[kXs].tensors = &span;
  const Status refused = contract.Check(values, Product::kAscend950);
  EXPECT_EQ(refused.code(), 161001);
  EXPECT_EQ(refused.message(), "aclnnToy: xs[1] must not be null");
  EXPECT_EQ(lenient.Check(values, Product::kAscend950).code(), 0);
}

TEST(Words, EntriesOfListsThatAreDead) {
  const Contract contract(ToyTable({NotNull("xs")}));
  const CallSpec call = Valid();
  const Tensor* const tensors[] = {nullptr, nullptr};
  const Scalar* const scalars[] = {nullptr, nullptr};
  const TensorSpan tensor_span{tensors, 1};
  const ScalarSpan scalar_span{scalars, 0};
  const BoundCall bound = call.Bind(contract);
  const Values all = bound;
  const auto sentence = [&](auto&& change) {
    std::vector<Value> values(all.begin(), all.end());
    change(values);
    const Status status = contract.Check(values, Product::kAscend950);
    EXPECT_EQ(status.code(), 161002);
    return status.message();
  };
  EXPECT_EQ(sentence([&](auto& values) { values[kXs].tensors = &tensor_span; }),
            "aclnnToy: xs[1] is not a live aclTensor: it was destroyed or is no such handle");
  EXPECT_EQ(sentence([&](auto& values) { values[kSs].scalars = &scalar_span; }),
            "aclnnToy: ss[0] is not a live aclScalar: it was destroyed or is no such handle");
  EXPECT_EQ(sentence([&](auto& values) { values[kYs].state = Value::State::kDead; }),
            "aclnnToy: ys is not a live aclTensorList: it was destroyed or is no such handle");
}

TEST(Words, AcceptIfEmptyLooksIntoLists) {
  const Contract contract(ToyTable({AcceptIfEmpty({"ys", "out"}), Length("axes", 9)}));
  const auto empty = [](size_t entries) {
    return [=](CallSpec& c) {
      c.args[kOut].tensor = TensorOf({0, 3});
      for (size_t i = 0; i < entries; ++i) c.args[kYs].tensors[i] = TensorOf({0});
    };
  };
  EXPECT_EQ(Checked(contract, empty(3)).code(), 0);
  EXPECT_EQ(Checked(contract, empty(2)).code(), 161002);
  EXPECT_EQ(Checked(contract, [&](CallSpec& c) {
              empty(0)(c);
              c.args[kYs].tensors.clear();
            }).code(),
            0);
}

TEST(Words, BroadcastKnowsEmptyAndZeroDimTensors) {
  const Contract contract(ToyTable({Broadcast("out", {"a", "b"})}));
  const struct {
    Dims a, b, out;
    bool fine;
  } kShapes[] = {
      {{}, {}, {}, true},           {{2, 3}, {}, {2, 3}, true},   {{1}, {0}, {0}, true},     {{0}, {1}, {0}, true},
      {{0, 3}, {1, 1}, {0, 3}, true}, {{2}, {0}, {0}, false},       {{2}, {0}, {2}, false},    {{4, 1}, {3}, {4, 3}, true},
      {{4, 1}, {3}, {4, 1}, false}, {{1}, {1, 1, 1}, {1}, false}, {{5}, {5}, {}, false},
  };
  for (const auto& s : kShapes) {
    const Status status = Checked(contract, [&](CallSpec& c) {
      c.args[kA].tensor = TensorOf(s.a);
      c.args[kB].tensor = TensorOf(s.b);
      c.args[kOut].tensor = TensorOf(s.out);
    });
    EXPECT_EQ(status.ok(), s.fine) << ToString(s.a) << " with " << ToString(s.b) << " to " << ToString(s.out);
  }
}

TEST(Words, AnAxisMayCountFromTheEndAndAZeroDimTensorHasOne) {
  const Contract one(ToyTable({Dim("axis", "a")}));
  const Contract some(ToyTable({DimsOf("axes", "a")}));
  for (int64_t axis = -4; axis < 4; ++axis) {
    EXPECT_EQ(Checked(one, Number(kAxis, axis)).ok(), axis >= -2 && axis < 2) << axis;
    EXPECT_EQ(Checked(one, Both(Shape(kA, {}), Number(kAxis, axis))).ok(), axis >= -1 && axis < 1) << axis;
  }
  for (int64_t axis : {INT64_MIN, INT64_MIN + 1, INT64_MAX, int64_t{1} << 32}) {
    EXPECT_FALSE(Checked(one, Number(kAxis, axis)).ok());
    EXPECT_FALSE(Checked(some, Axes({axis})).ok());
  }
  EXPECT_TRUE(Checked(some, Axes({})).ok());
  EXPECT_TRUE(Checked(some, Axes({-1, -2})).ok());
  EXPECT_TRUE(Checked(some, Both(Shape(kA, {}), Axes({-1}))).ok());
  EXPECT_FALSE(Checked(some, Both(Shape(kA, {}), Axes({-1, 0}))).ok());
}

// 2^32 is no FLOAT, though its lower half is 0.
TEST(Words, DTypeNumbersAreNotCutOff) {
  const Contract contract(ToyTable({DTypeArg("dtype", {{{DType::kF32}}})}));
  EXPECT_TRUE(Checked(contract, Number(kDType, 0)).ok());
  const Status status = Checked(contract, Number(kDType, int64_t{1} << 32));
  EXPECT_EQ(status.message(), std::string("aclnnToy: dtype must be FLOAT on ") + Name(Product::kAscend950) + ", got dtype 4294967296");
}

TEST(Words, ProductsDecide) {
  const auto bf16 = [](CallSpec& c) {
    c.args[kA].tensor.dtype = c.args[kB].tensor.dtype = DType::kBF16;
    c.args[kS].scalar = Scalar::Of(DType::kBF16, 1);
    c.args[kDType].integer = static_cast<int64_t>(DType::kBF16);
  };
  for (const Rule& rule : {Deduces(kFloats16And32), ScalarDTypes("s", kFloats16And32), DTypeArg("dtype", kFloats16And32)}) {
    const Contract contract(ToyTable({rule}));
    EXPECT_TRUE(Checked(contract, bf16, Product::kA2).ok());
    const Status status = Checked(contract, bf16, Product::kTraining);
    EXPECT_EQ(status.code(), 161002);
    EXPECT_NE(status.message().find("FLOAT or FLOAT16 on Atlas training, got "), std::string::npos) << status.message();
  }
}

// ---- deduction: what Table::deduce adds to core/promotion.h ----

DType Deduced(const Deduction& deduce, const Change& change) {
  const Contract contract(ToyTable({}, deduce));
  const CallSpec call = With(change);
  return contract.Deduced(call.Bind(contract));
}

TEST(Deduction, AZeroDimTensorDoesNotDecideThePrecision) {
  const auto types = [](DType a, DType b, DType out) {
    return [=](CallSpec& c) {
      c.args[kA].tensor = TensorOf({2, 3}, a);
      c.args[kB].tensor = TensorOf({}, b);
      c.args[kOut].tensor = TensorOf({2, 3}, out);
    };
  };
  const Deduction always{.from = {"a", "b"}, .out = "out", .zero_dim = kAllProducts};
  const Deduction by_result{.from = {"a", "b"}, .out = "out"};
  EXPECT_EQ(Deduced(always, types(DType::kF16, DType::kF32, DType::kF32)), DType::kF16);
  EXPECT_EQ(Deduced(by_result, types(DType::kF16, DType::kF32, DType::kF32)), DType::kF32);
  EXPECT_EQ(Deduced(by_result, types(DType::kF16, DType::kF32, DType::kF16)), DType::kF16);
  EXPECT_EQ(Deduced(always, types(DType::kI8, DType::kF32, DType::kF32)), DType::kF32);
  const auto swapped = [&](CallSpec& c) {
    types(DType::kF16, DType::kF32, DType::kF32)(c);
    std::swap(c.args[kA].tensor, c.args[kB].tensor);
  };
  EXPECT_EQ(Deduced(always, swapped), DType::kF16);
}

TEST(Deduction, WhatIntegersAreComputedIn) {
  const Deduction floating{.from = {"a", "b"}, .out = "out", .whole = DType::kF32};
  EXPECT_EQ(Deduced(floating, Both(TypeOf(kA, DType::kI32), TypeOf(kB, DType::kBool))), DType::kF32);
  const Deduction truth{.from = {"a", "b"}, .truth = DType::kF32};
  EXPECT_EQ(Deduced(truth, Both(TypeOf(kA, DType::kBool), TypeOf(kB, DType::kBool))), DType::kF32);
  EXPECT_EQ(Deduced(truth, Both(TypeOf(kA, DType::kI32), TypeOf(kB, DType::kBool))), DType::kI32);
  EXPECT_EQ(Deduced(floating, Both(TypeOf(kA, DType::kF16), TypeOf(kB, DType::kF16))), DType::kF16);
}

TEST(Deduction, AnAbsentOperandIsNone) {
  const Deduction deduce{.from = {"a", "b", "s"}, .out = "out"};
  EXPECT_EQ(Deduced(deduce, Both(Both(Absent(kB), Absent(kS)), TypeOf(kA, DType::kI8))), DType::kI8);
  EXPECT_EQ(Deduced(deduce, Both(Absent(kB), TypeOf(kA, DType::kI8))), DType::kF32);
}

// ---- tables ----

TEST(Documentation, DTypesThatAreTakenAlikeShareATable) {
  const Contract contract(ToyTable({DTypes("a", kFloats16And32), DTypes("out", kFloats16And32), Deduces({{{DType::kF32}}}),
                                    DTypeRows({"a", "b"}, {{{DType::kF32, DType::kF32}}, {{DType::kF16, DType::kF32}}})}));
  const std::string page = DocumentationOf(contract);
  EXPECT_NE(page.find("\n| a, out | products |\n|---|---|\n| FLOAT, FLOAT16 | all |\n| BF16 | Ascend 950, Atlas A3, Atlas A2 |\n"),
            std::string::npos)
      << page;
  EXPECT_NE(page.find("\n| computed from a and b | products |\n|---|---|\n| FLOAT | all |\n"), std::string::npos) << page;
  EXPECT_NE(page.find("\n| a | b | products |\n|---|---|---|\n| FLOAT | FLOAT | all |\n| FLOAT16 | FLOAT | all |\n"),
            std::string::npos)
      << page;
}

using WordsDeathTest = testing::Test;

TEST(WordsDeathTest, ATableWithAMistakeDoesNotLoad) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(Contract(ToyTable({}, {.from = {"z"}})), "aclnnToy: bad contract table: no argument 'z'");
  EXPECT_DEATH(Contract(ToyTable({}, {.from = {"a"}, .out = "z"})), "no argument 'z'");
  Table sizes = ToyTable({});
  sizes.sizes = {{"M", "xs", 0}};
  EXPECT_DEATH(Contract(std::move(sizes)), "'xs' has no dims");
}

}  // namespace
}  // namespace anyacl::contract
