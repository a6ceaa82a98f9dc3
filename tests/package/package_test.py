#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""Tests of the installed tree. One of them by name:  package_test.py layout|symbols|loading|addresses|..."""
import argparse
import base64
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SYSTEM = re.compile(r"(libc|libm|libdl|librt|libpthread|ld-linux[\w-]*|libstdc\+\+|libgcc_s)\.so\.\d+")
ACCESSOR = "anyacl_introspection_v1"
PLUGINS = {"libanyacl_cuda.so": "anyacl_cuda_plugin_v1", "libanyacl_verify.so": "anyacl_verify_plugin_v1"}  # and all they export
DOCUMENTED = ["libascendcl.so", "libnnopbase.so", "libopapi_math.so", "libopapi_nn.so"]
problems = []


def check(condition, text):
    if not condition:
        problems.append(text)


def run(command, **environment):
    """Output of a command that must succeed, in an environment without traces of another installation."""
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("ASCEND_", "ANYACL_")) and k not in ("LD_LIBRARY_PATH", "CMAKE_PREFIX_PATH", "CXX",
                                                                     "PKG_CONFIG_PATH", "PYTHONPATH")}
    env.update(environment)
    done = subprocess.run([str(c) for c in command], env=env, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise SystemExit(f"status {done.returncode} of {shlex.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def dynamic(path, tag):
    return re.findall(r"\(%s\)[^[]*\[([^]]*)\]" % tag, run(["readelf", "-dW", path]))


def shared_objects(args):
    return [p for p in sorted(args.prefix.glob("lib64/**/*.so*")) if p.is_file() and not p.is_symlink()]


# --- the tree -------------------------------------------------------------------------------------------------------
def layout(args):
    prefix, arch = args.prefix, os.uname().machine
    for real in ("include", "lib64"):
        check((prefix / real).is_dir() and not (prefix / real).is_symlink(), f"{real} is not a real folder")
        for link in (f"{arch}-linux/{real}", f"runtime/{real}", f"compiler/{real}", f"acllib/{real}"):
            check((prefix / link).resolve() == prefix / real, f"{link} does not lead to {real}")
    for name in ("set_env.sh", "set_env.csh", "set_env.fish", "bin/setenv.bash", "bin/anyacl-config", "bin/anyacl-c++",
                 "lib64/cmake/AnyACL/AnyACLConfig.cmake", "lib64/pkgconfig/anyacl.pc", "share/doc/anyacl/LICENSE",
                 "share/doc/anyacl/licenses/highway.txt", "share/doc/anyacl/licenses/fmt.txt",
                 "share/doc/anyacl/licenses/nlohmann-json.txt", "share/doc/anyacl/licenses/CLI11.txt",
                 "share/info/runtime/version.info", "include/version/cann_version.h", "opp", "python/site-packages"):
        check((prefix / name).exists(), f"{name} is missing")
    told = [line.split("=")[1] for path in prefix.rglob("ascend_*_install.info")  # as torch_npu looks for it
            for line in path.read_text(encoding="utf-8").splitlines() if "version" in line]
    check(told == re.findall(r"^version=(.*)$", (prefix / "share/info/runtime/version.info").read_text(), re.MULTILINE),
          f"the install.info files say {told}")
    for path in prefix.rglob("*"):
        if path.is_symlink():
            check(not os.path.isabs(os.readlink(path)), f"{path} is an absolute link")
            check(path.exists(), f"{path} leads nowhere")
    installed = {p.relative_to(prefix / "include") for p in prefix.glob("include/**/*.h")}
    written = {p.relative_to(args.headers) for p in args.headers.glob("**/*.h")}
    check(written <= installed, f"headers not installed: {sorted(map(str, written - installed))}")
    plain = {p.name for p in prefix.glob("include/aclnnop/*.h")}
    mirrored = {p.name for p in prefix.glob("include/aclnnop/level2/*.h")}
    check(plain and plain == mirrored, f"aclnnop has {sorted(plain)}, its level2 {sorted(mirrored)}")
    for path in list(prefix.rglob("*")):  # nothing may remember where it was built or installed
        if path.is_file() and not path.is_symlink() and path.suffix in ("", ".sh", ".csh", ".fish", ".cmake", ".pc", ".h"):
            text = path.read_bytes()
            check(str(prefix.parent).encode() not in text, f"{path} holds the path it was installed to")


# --- names and dependencies of the libraries ------------------------------------------------------------------------
def declarations(args):
    """The module declared_names, and the headers that declare functions."""
    spec = importlib.util.spec_from_file_location("declared_names", args.names)
    names = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(names)
    return names, [h for folder in ("acl", "aclnn", "aclnnop", "hccl") for h in sorted((args.headers / folder).rglob("*.h"))]


def symbols(args):
    names, headers = declarations(args)
    everything = set(names.all_declared(headers))

    def compare(library, wanted):
        have = set(names.exported(args.prefix / "lib64" / library))
        check(have <= wanted, f"{library} exports what no header declares: {sorted(have - wanted)}")
        check(wanted <= have, f"{library} lacks {sorted(wanted - have)}")

    compare("libanyacl.so", everything | {ACCESSOR})
    for plugin, entry in PLUGINS.items():
        if (args.prefix / "lib64" / plugin).exists():  # that for CUDA where nvcc was found
            compare(plugin, {entry})
    offered = set()
    for line in args.table.read_text(encoding="utf-8").splitlines():
        library, *listed = line.split()
        wanted = set(names.all_declared(map(Path, listed)))
        offered |= wanted
        compare(library, wanted)
    check(everything == offered, f"in no library of cmake/libraries.cmake: {sorted(everything - offered)}")

    bundled = {p.name for p in shared_objects(args)}
    for path in shared_objects(args):
        soname = dynamic(path, "SONAME")
        check(soname == [path.name], f"{path.name} calls itself {soname}")
        for needed in dynamic(path, "NEEDED"):
            check(SYSTEM.fullmatch(needed) or needed in bundled, f"{path.name} needs {needed}, which is not bundled")
        for entry in ":".join(dynamic(path, "RUNPATH") + dynamic(path, "RPATH")).split(":"):
            check(entry == "" or entry.startswith("$ORIGIN"), f"{path.name} has the run path {entry}")
        versions = re.findall(r"GLIBC_(\d+)\.(\d+)", run(["readelf", "-VW", path]))
        newest = max(((int(a), int(b)) for a, b in versions), default=(0, 0))
        if "debian" in Path("/etc/os-release").read_text(encoding="utf-8"):
            check(newest <= (2, 36), f"{path.name} needs glibc {newest}")
    for path in [p for p in args.prefix.glob("bin/*") if p.read_bytes()[:4] == b"\x7fELF"]:
        for needed in dynamic(path, "NEEDED"):
            check(SYSTEM.fullmatch(needed) or needed in bundled, f"bin/{path.name} needs {needed}")
    check(any("NODELETE" in line for line in run(["readelf", "-dW", args.prefix / "lib64/libanyacl.so"]).splitlines()),
          "libanyacl.so could be unmapped below its threads")


# --- opening libraries at run time ----------------------------------------------------------------------------------
def loading(args):
    loader = args.work / "loader"
    run(["cc", "-std=c11", "-Wall", HERE / "loader.c", "-o", loader])
    filters = [p for p in shared_objects(args) if p.parent.name == "lib64" and p.name not in ("libanyacl.so", *PLUGINS)]
    check(len(filters) > 20, f"only {len(filters)} libraries")
    lazy, now, globally, deep = os.RTLD_LAZY, os.RTLD_NOW, os.RTLD_GLOBAL, os.RTLD_DEEPBIND
    for flags in (lazy, now, lazy | globally, now | globally, now | deep):
        run([loader, flags] + filters)
    run([loader, now] + filters, LD_BIND_NOW="1")
    for one in filters:  # each as the first and only one, through a link, and by its bare name
        check("cuda" not in run(["ldd", one]).lower(), f"ldd {one} shows a CUDA library")
        run([loader, now, one])
        run([loader, now, args.prefix / f"{os.uname().machine}-linux/lib64" / one.name, one])
    run([loader, now] + [p.name for p in filters], LD_LIBRARY_PATH=str(args.prefix / "lib64"))
    run([loader, now] + sorted(args.prefix.glob("lib64/stub/*.so")) + filters)
    copy = args.work / "followed"  # a copy that follows links still is a working tree
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(args.prefix, copy)
    copied = [p for p in sorted(copy.glob("lib64/lib*.so")) if p.name not in PLUGINS]
    run([loader, now] + copied + sorted(copy.glob("lib64/stub/*.so")))


# --- every function -------------------------------------------------------------------------------------------------
def addresses(args):
    """A program that takes the address of every declared function links, and each is in libanyacl.so."""
    names, headers = declarations(args)
    source, program = args.work / "every.cpp", args.work / "every"
    lines = [f'#include "{h.relative_to(args.headers)}"' for h in headers]
    rows = [f'    {{"{name}", reinterpret_cast<void*>(&{name})}},' for name in names.all_declared(headers)]
    source.write_text("\n".join(lines + [
        "#include <dlfcn.h>", "#include <stdio.h>", "#include <string.h>",
        "struct Row { const char* name; void* address; };", "static Row rows[] = {", *rows, "};", "int main() {",
        "  int wrong = 0;", "  for (const Row& row : rows) {", "    Dl_info info;",
        '    if (!dladdr(row.address, &info) || !strstr(info.dli_fname, "/libanyacl.so")) {',
        '      printf("%s is not in libanyacl.so\\n", row.name);', "      ++wrong;", "    }", "  }",
        "  return wrong ? 1 : 0;", "}", ""]), encoding="utf-8")
    lib64 = args.prefix / "lib64"
    run([args.cxx, "-std=c++11", "-Wall", "-Wextra", "-Werror", source, "-o", program, f"-I{args.prefix}/include",
         f"-L{lib64}", "-lascendcl", "-lnnopbase", "-lopapi", "-lacl_op_compiler", "-lacl_cblas", "-lge_runner",
         "-lhccl", "-lhcomm"])
    run([program], LD_LIBRARY_PATH=str(lib64))
    run([program], LD_LIBRARY_PATH=str(lib64), LD_BIND_NOW="1")


# --- building programs ----------------------------------------------------------------------------------------------
def programs(args):
    prefix, source = args.prefix, HERE / "program.cpp"
    lib64 = prefix / "lib64"
    config, wrapper = prefix / "bin/anyacl-config", prefix / "bin/anyacl-c++"

    def needed(program):
        return [n for n in dynamic(program, "NEEDED") if not SYSTEM.fullmatch(n)]

    def runs(how, program, **environment):
        text = run([program], **environment)
        check(text == "fine\n", f"{how}: the program prints {text!r}")
        run([program], LD_BIND_NOW="1", **environment)

    def documents(how, *flags, libraries=DOCUMENTED, expect=None):
        """g++ with the libraries by full path, and set_env.sh at run time."""
        program = args.work / how
        text = run([args.cxx, "-std=c++11", "-O2", "-fPIC", "-Wall", "-Wextra", "-Werror", *flags, source, "-o", program,
                    f"-I{prefix}/include", f"-I{prefix}/include/aclnn"] + [lib64 / name for name in libraries])
        check(text == "", f"{how}: the compiler says {text}")
        check(needed(program) == (expect or libraries), f"{how}: linked {libraries}, recorded {needed(program)}")
        text = run(["bash", "-euc", f"source {shlex.quote(str(prefix))}/set_env.sh && {shlex.quote(str(program))}"])
        check(text == "fine\n", f"{how}: the program prints {text!r}")

    everything = "-Wl,--no-as-needed"
    documents("documents", everything)
    documents("as-needed", "-Wl,--as-needed", expect=["libascendcl.so", "libnnopbase.so", "libopapi_nn.so"])
    documents("acl_rt", everything, libraries=["libopapi_nn.so", "libopapi_math.so", "libacl_rt.so", "libnnopbase.so"])
    documents("ggml", everything, libraries=["libascendcl.so", "libnnopbase.so", "libopapi.so", "libacl_op_compiler.so"])
    documents("hccl", everything, libraries=["libhccl.so", "libascendcl.so", "libnnopbase.so", "libopapi_nn.so"])
    documents("custom", everything, libraries=["libcust_opapi.so", "libascendcl.so", "libnnopbase.so"])
    documents("no-pie", everything, "-no-pie", "-fno-pic", "-Wl,-z,lazy")
    documents("bind-now", everything, "-Wl,-z,now")

    program = args.work / "wrapper"
    run([wrapper, "-std=c++11", source, "-o", program], CXX=args.cxx)
    check(needed(program) == ["libascendcl.so", "libnnopbase.so", "libopapi.so"], f"wrapper: {needed(program)}")
    runs("anyacl-c++", program)
    run([wrapper, "-c", source, "-o", args.work / "object.o"], CXX=f"{args.cxx} -Werror")
    run([wrapper, args.work / "object.o", "-o", program])
    runs("anyacl-c++ in two steps", program)
    shown = run([wrapper, "-show", "a b.cpp"], CXX="my-c++")
    check(shown.startswith("my-c++ ") and "'a b.cpp'" in shown and "-lopapi" in shown, f"-show: {shown}")
    check("-lopapi" not in run([wrapper, "-show", "-c", "x.cpp"]), "anyacl-c++ -c links")

    options = run([config, "--cflags", "--libs", "--rpath"]).split()
    run([args.cxx, "-std=c++11", source, "-o", args.work / "config"] + options)
    runs("anyacl-config", args.work / "config")
    check(run([config, "--prefix"]).strip() == str(prefix), "anyacl-config --prefix")
    check(re.fullmatch(r"\d+\.\d+\.\d+\n", run([config, "--version"])), "anyacl-config --version")

    options = run(["pkg-config", "--cflags", "--libs", "anyacl"], PKG_CONFIG_PATH=str(lib64 / "pkgconfig")).split()
    run([args.cxx, "-std=c++11", source, "-o", args.work / "pkgconfig"] + options)
    runs("pkg-config", args.work / "pkgconfig", LD_LIBRARY_PATH=str(lib64))

    tool = prefix / "bin/anyacl"
    if tool.exists():
        check("AnyACL" in run([tool, "info"]), "anyacl info")

    project = args.work / "project"
    project.mkdir(exist_ok=True)
    (project / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.14)\nproject(user CXX)\nset(CMAKE_CXX_STANDARD 11)\n"
        "find_package(AnyACL 0.1 REQUIRED)\n"
        f"add_executable(whole {source})\ntarget_link_libraries(whole AnyACL::aclnn)\n"
        f"add_executable(some {source})\n"
        "target_link_libraries(some AnyACL::ascendcl AnyACL::nnopbase AnyACL::opapi_nn)\n", encoding="utf-8")
    for how, path in (("prefix", prefix), ("set_env", lib64 / "cmake")):
        shutil.rmtree(project / "build", ignore_errors=True)
        run(["cmake", "-G", "Ninja", "-S", project, "-B", project / "build", f"-DCMAKE_CXX_COMPILER={args.cxx}"],
            CMAKE_PREFIX_PATH=str(path))
        run(["cmake", "--build", project / "build"])
        runs(f"find_package through {how}", project / "build/whole")
        runs(f"find_package through {how}", project / "build/some")
    check(needed(project / "build/some") == ["libascendcl.so", "libnnopbase.so", "libopapi_nn.so"], "find_package: names")


# --- set_env.sh and its kin -----------------------------------------------------------------------------------------
def environment(args):
    prefix = args.prefix
    file = shlex.quote(f"{prefix}/set_env.sh")
    paths = "PATH LD_LIBRARY_PATH PYTHONPATH CMAKE_PREFIX_PATH PKG_CONFIG_PATH"
    show = f"for n in {paths} ASCEND_HOME_PATH ASCEND_TOOLKIT_HOME ASCEND_OPP_PATH; do printenv $n; done"
    expected = None
    for command in (f"source {file}; {show}", f"source {file}; source {file}; {show}",
                    f"set -eu; source {file}; [[ $- == *e* && $- == *u* ]]; {show}",
                    f"source {file}; [[ $- != *e* && $- != *u* ]] && {show}",
                    f"source {shlex.quote(str(prefix))}/bin/setenv.bash; {show}",
                    f"cd {shlex.quote(str(prefix))}/lib64; source ../set_env.sh; {show}",
                    f"CDPATH=/; cd {shlex.quote(str(prefix))}; source set_env.sh; {show}"):
        text = run(["bash", "-c", command], PATH="/usr/bin:/bin")
        expected = expected or text
        check(text == expected, f"{command}\ngives\n{text}instead of\n{expected}")
    lines = expected.splitlines()
    check(lines[0] == f"{prefix}/bin:/usr/bin:/bin", f"PATH is {lines[0]}")
    check(lines[1] == f"{prefix}/lib64", f"LD_LIBRARY_PATH is {lines[1]}")
    check(lines[5:] == [str(prefix), str(prefix), f"{prefix}/opp"], f"ASCEND_*: {lines[5:]}")
    tool = shlex.quote(str(prefix / "bin/anyacl"))
    if (prefix / "bin/anyacl").exists():
        text = run(["bash", "-c", f"{tool} run -- {tool} run -- bash -c '{show}'"], PATH="/usr/bin:/bin")
        check(text == expected, f"anyacl run gives\n{text}instead of\n{expected}")
    text = run(["bash", "-c", f"source {file}; echo $LD_LIBRARY_PATH"], LD_LIBRARY_PATH=f"/a:{prefix}/lib64:/b:{prefix}/lib64")
    check(text == f"{prefix}/lib64:/a:/b\n", f"older entries stay: {text}")
    text = run(["bash", "-c", f"source {file}; declare -p; declare -F"])
    check("_anyacl" not in text.replace("BASH_EXECUTION_STRING", ""), "set_env.sh leaves names of its own behind")
    done = subprocess.run(["sh", "-c", f"cd / && . {file} 2>/dev/null"], check=False)
    check(done.returncode != 0, "a shell that cannot tell its place is not told")
    run(["sh", "-c", f"cd {shlex.quote(str(prefix))} && . ./set_env.sh && test \"$ASCEND_HOME_PATH\" = \"$PWD\""])
    for shell, name in (("zsh", "set_env.sh"), ("tcsh", "set_env.csh"), ("fish", "set_env.fish")):
        if not shutil.which(shell):
            print(f"no {shell} here: {name} not tried with it")
            continue
        rc = {"zsh": ["-f"], "tcsh": ["-f"], "fish": ["--no-config"]}[shell]
        one = f"source {shlex.quote(str(prefix))}/{name}"
        names = f"{paths} ASCEND_HOME_PATH ASCEND_TOOLKIT_HOME ASCEND_OPP_PATH".split()
        text = run([shell, *rc, "-c", "; ".join([one, one] + [f"printenv {n}" for n in names])], PATH="/usr/bin:/bin")
        check(text == expected, f"{shell} gives\n{text}instead of\n{expected}")


# --- the Python wheel -----------------------------------------------------------------------------------------------
def wheel(args):
    packer = HERE.parents[1] / "packaging/wheel.py"
    shutil.rmtree(args.work, ignore_errors=True)
    site = args.work / "site"
    made = [Path(run([sys.executable, packer, args.prefix, args.work / turn, "1.2.3"]).strip()) for turn in ("a", "b")]
    check(made[0].read_bytes() == made[1].read_bytes(), "the same tree makes two different wheels")
    check(re.fullmatch(r"anyacl-1\.2\.3-py3-none-manylinux_2_\d+_%s\.whl" % os.uname().machine, made[0].name),
          f"the wheel is called {made[0].name}")
    with zipfile.ZipFile(made[0]) as archive:
        check(archive.testzip() is None, "the wheel is damaged")
        for entry in archive.infolist():
            mode = entry.external_attr >> 16
            check(stat.S_ISREG(mode), f"{entry.filename} is no plain file")
            archive.extract(entry, site)
            (site / entry.filename).chmod(mode & 0o777)
    info = site / "anyacl-1.2.3.dist-info"
    listed = {row.split(",")[0]: row.split(",")[1:] for row in (info / "RECORD").read_text().splitlines()}
    there = {p.relative_to(site).as_posix() for p in site.rglob("*") if p.is_file()}
    check(set(listed) == there, f"RECORD and the files differ: {sorted(set(listed) ^ there)}")
    for name, (digest, size) in listed.items():
        data = (site / name).read_bytes()
        own = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        check(name.endswith("/RECORD") or (digest, int(size)) == (f"sha256={own}", len(data)), f"RECORD is wrong about {name}")
    newest = max((int(b), int(a)) for p in site.rglob("*") if p.is_file() and p.read_bytes()[:4] == b"\x7fELF"
                 for a, b in re.findall(r"GLIBC_(\d+)\.(\d+)", run(["readelf", "-VW", p])))
    check(f"manylinux_2_{newest[0]}_" in made[0].name, f"glibc {newest} is needed by {made[0].name}")
    root = site / "anyacl/prefix"
    for name in ("lib64/libascendcl.so", "lib64/libhccl.so", "runtime", "compiler", "opp/vendors", "include/acl/acl.h",
                 "set_env.sh", "bin/anyacl"):
        check((root / name).exists(), f"the wheel lacks {name}")
    # A process that activates it finds every library by its bare name, one state behind all, and hands it on.
    script = args.work / "client.py"
    script.write_text("""
import ctypes, os, subprocess, sys
import anyacl
root = anyacl.activate()
assert anyacl.activate() == root == anyacl.prefix()
acl, opapi = ctypes.CDLL("libascendcl.so"), ctypes.CDLL("libopapi.so")
assert acl.aclInit(None) == 0 and acl.aclInit(None) == 100002
assert acl.aclrtSetDevice(0) == 0
assert ctypes.cast(opapi.aclnnEluBackward, ctypes.c_void_p).value
maps = {line.split()[-1] for line in open("/proc/self/maps") if "libanyacl.so" in line}
assert maps == {f"{root}/lib64/libanyacl.so"}, maps
assert os.environ["ASCEND_HOME_PATH"] == str(root)
subprocess.run([sys.executable, "-c", "import ctypes; ctypes.CDLL('libhccl.so')"], check=True)
sys.modules["torch_npu"] = None
anyacl._loaded.clear()
try:
    anyacl.activate()
except RuntimeError as problem:
    assert "before torch_npu" in str(problem)
else:
    sys.exit("too late, and not told")
print("fine")
""", encoding="utf-8")
    check(run([sys.executable, script], PYTHONPATH=str(site)).endswith("fine\n"), "the client says something else")
    (root / "bin/anyacl").chmod(0o644)  # as some installers leave it
    console = [sys.executable, "-c", "import sys, anyacl; sys.argv = ['anyacl'] + sys.argv[1:]; anyacl.main()"]
    text = run([*console, "run", "--", sys.executable, "-c", "import ctypes; print(ctypes.CDLL('libascendcl.so'))"],
               PYTHONPATH=str(site))
    check("libascendcl.so" in text, f"anyacl run gives {text}")
    check(run([*console, "--version"], PYTHONPATH=str(site)).startswith("AnyACL "), "anyacl --version")


def main():
    tests = {f.__name__: f for f in (layout, symbols, loading, addresses, programs, environment, wheel)}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("test", choices=tests)
    for name in ("prefix", "work", "names", "table", "headers"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--cxx", required=True)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    tests[args.test](args)
    for text in problems:
        print(text)
    print(f"{args.test}: {len(problems)} problems" if problems else f"{args.test}: fine")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
