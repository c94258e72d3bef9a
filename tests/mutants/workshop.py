"""workshop.py - builds mutants out of tree: only the changed file is compiled (of a header: the files
that include it), and libgmd_allocator.so is linked anew, without link-time optimisation. Each job has a
folder laid out like an installed gmd, in which the mutant is the library that `reference` names."""

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess


class BuildFailure(Exception):
    pass


def run_tool(arguments, cwd):
    done = subprocess.run(arguments, cwd=cwd, capture_output=True, check=False)
    if done.returncode != 0:
        raise BuildFailure("%s: %s" % (arguments[0], done.stderr.decode(errors="replace")[-2000:]))
    return done.stdout.decode()


def moved_command(words, replaced, output):
    """A compile command with other words and output. Warnings are off: a mutant that makes the compiler
    warn is to be judged, not refused by -Werror."""
    words = ["-w" if w.startswith("-W") else replaced.get(w, w) for w in words]
    words[words.index("-o") + 1] = output
    return words


def with_place_of_allocator(words, folder):
    """A compile command by which __FILE__ is allocator/FILE in whatever folder the file lies: equal code
    gives equal objects, and an assertion is the same one in every job. Later maps go before earlier ones."""
    at = words.index("-o")
    return [*words[:at], "-fmacro-prefix-map=%s/=allocator/" % folder, *words[at:]]


def link_forced(source, target):
    """A hard link where that goes (gmd finds its libraries by its own path), else a copy."""
    if os.path.lexists(target):
        os.unlink(target)
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


class Workshop:
    """What all jobs share: commands, and the objects of the allocator as it is."""

    def __init__(self, root, build, out, sanitized=None):
        self.root, self.build, self.out = root, build, out
        self.sanitized = sanitized  # the workshop that builds with sanitizers; None: this is it
        os.makedirs(out, exist_ok=True)
        self.allocator = os.path.join(root, "allocator")
        self.commands = self._compile_commands()
        self.sources = sorted(self.commands)
        self.link = self._link_command("lib/gmd/libgmd_allocator.so")
        self.tests = self._test_links()
        self.test_commands = self._test_commands()
        self.base = os.path.join(out, "base")
        self._make_base()

    # --- the project's own commands --------------------------------------------------------------

    def _compile_commands(self):
        with open(os.path.join(self.build, "compile_commands.json"), encoding="utf-8") as stream:
            entries = json.load(stream)
        chosen = {}
        for entry in entries:
            folder, name = os.path.split(entry["file"])
            if folder != self.allocator:
                continue
            words = shlex.split(entry["command"])
            is_shared = "-Dgmd_allocator_EXPORTS" in words
            if name not in chosen or not is_shared:
                chosen[name] = [w for w in words if w not in ("-flto=auto", "-fno-fat-lto-objects", "-g")]
        return chosen

    def _test_commands(self):
        """Sources of the allocator's unit tests, which have the inline functions of headers in them:
        the name of the object, relative to the build -> the words of its compile command."""
        with open(os.path.join(self.build, "compile_commands.json"), encoding="utf-8") as stream:
            entries = json.load(stream)
        folder = os.path.join(self.root, "tests", "allocator")
        return {_output(entry): shlex.split(entry["command"])
                for entry in entries if os.path.dirname(entry["file"]) == folder}

    def _last_command(self, target):
        lines = run_tool(["ninja", "-t", "commands", target], self.build).strip().splitlines()
        inner = re.match(r": && (.*) && :$", lines[-1])
        return shlex.split(inner.group(1) if inner else lines[-1])

    def _link_command(self, target):
        return [w for w in self._last_command(target) if not w.startswith("-flto") and w != "-fno-fat-lto-objects"]

    def _test_links(self):
        """Test programs that the allocator is linked into: name -> the words of their link command."""
        targets = run_tool(["ninja", "-t", "targets", "all"], self.build)
        names = re.findall(r"^(tests/\w+): C_EXECUTABLE_LINKER", targets, re.M)
        links = {}
        for name in names:
            if name.startswith("tests/test_allocator_") or name == "tests/record_snapshot":
                words = self._last_command(name)
                if "allocator/libgmd_allocator_core.a" in words:
                    links[name] = words
        return links

    def ast_arguments(self, source):
        flags = [w for w in self.commands[source] if w.startswith(("-I", "-D", "-std"))]
        return ["clang", "-Xclang", "-ast-dump=json", "-fsyntax-only", "-w", *flags,
                os.path.join(self.allocator, source)]

    def compile_test(self, words, folder, output):
        """Compiles a test with the headers of that folder."""
        run_tool(self._moved(words, folder, output), self.build)

    # --- objects ---------------------------------------------------------------------------------

    def compile(self, source, folder, output):
        """Compiles folder/source, whose headers are those of the folder."""
        words = self._moved(self.commands[source], folder, output)
        words[-1] = os.path.join(folder, source)
        run_tool(words, self.build)

    def _moved(self, words, folder, output):
        words = moved_command(words, {"-I" + self.allocator: "-I" + folder}, output)
        return with_place_of_allocator(words, folder)

    def _make_base(self):
        os.makedirs(self.base, exist_ok=True)
        shadow = os.path.join(self.out, "base-source")
        self.fill_shadow(shadow)
        for source in self.sources:
            self.compile(source, shadow, self.object_of(source))
        self.included_by = {}
        for source in self.sources:
            words = [w for w in self.commands[source] if w.startswith(("-I", "-D", "-std"))]
            listed = run_tool(["cc", "-MM", *words, os.path.join(self.allocator, source)], self.build)
            for name in re.findall(re.escape(self.allocator) + r"/(\w+\.h)", listed):
                self.included_by.setdefault(name, []).append(source)

    def object_of(self, source):
        return os.path.join(self.base, source + ".o")

    def fill_shadow(self, shadow):
        """A folder with links to all files of allocator/, any of which can be put aside."""
        shutil.rmtree(shadow, ignore_errors=True)
        os.makedirs(shadow)
        for name in os.listdir(self.allocator):
            if name.endswith((".c", ".h")):
                os.symlink(os.path.join(self.allocator, name), os.path.join(shadow, name))
        os.symlink(os.path.join(self.allocator, "adapters"), os.path.join(shadow, "adapters"))


class Job:
    """One worker's folder: an installed gmd whose reference allocator is the mutant."""

    def __init__(self, workshop, number):
        self.shop, self.number = workshop, number
        self.mutant, self.twin = None, None
        self.folder = os.path.join(workshop.out, "job-%d" % number)
        self.gmd = os.path.join(self.folder, "bin", "gmd")
        self.library = os.path.join(self.folder, "lib", "gmd", "libgmd_allocator.so")
        self.shadow = os.path.join(self.folder, "source")
        self.changed = {}  # source -> its object
        self.has_tests = False
        self._lay_out()

    def _lay_out(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        lib = os.path.dirname(self.library)
        for folder in ("bin", "objects", "tests", "work"):
            os.makedirs(os.path.join(self.folder, folder))
        os.makedirs(lib)
        link_forced(os.path.join(self.shop.build, "bin", "gmd"), self.gmd)
        built = os.path.join(self.shop.build, "lib", "gmd")
        for name in os.listdir(built):
            if name != "libgmd_allocator.so":
                os.symlink(os.path.join(built, name), os.path.join(lib, name))
        self.shop.fill_shadow(self.shadow)

    def work_folder(self):
        """Empty, for what a judge leaves."""
        work = os.path.join(self.folder, "work")
        shutil.rmtree(work, ignore_errors=True)
        os.makedirs(work)
        return work

    def build(self, mutant):
        """Builds the library (the original: None). False: the same object code, no mutant at all. The
        library is linked even then: it must not stay that of the mutant before, where code that differs
        in one build is the same under sanitizers."""
        self.mutant, self.changed, self.has_tests = mutant, {}, False
        if mutant:
            self._compile(mutant)
        words = list(self.shop.link)
        words[words.index("-o") + 1] = self.library
        for i, word in enumerate(words):
            if word.endswith(".c.o"):
                source = os.path.basename(word)[:-2]
                words[i] = self.changed.get(source, self.shop.object_of(source))
        run_tool(words, self.shop.build)
        return not mutant or bool(self.changed)

    @contextlib.contextmanager
    def _mutated(self, mutant):
        """The shadow folder with the mutant in place of its file."""
        path = os.path.join(self.shadow, mutant.file)
        os.unlink(path)
        try:
            with open(path, "w", encoding="latin-1") as stream:
                stream.write(mutant.text())
            yield
        finally:
            os.unlink(path)
            os.symlink(os.path.join(self.shop.allocator, mutant.file), path)

    def _compile(self, mutant):
        with self._mutated(mutant):
            sources = [mutant.file] if mutant.file.endswith(".c") else self.shop.included_by[mutant.file]
            for source in sources:
                made = os.path.join(self.folder, "objects", source + ".o")
                self.shop.compile(source, self.shadow, made)
                if not _same(made, self.shop.object_of(source)):
                    self.changed[source] = made

    def sanitized(self):
        """The same mutant under the sanitizers."""
        if not self.twin:
            self.twin = Job(self.shop.sanitized, self.number)
        self.twin.build(self.mutant)
        return self.twin

    def build_tests(self):
        """The unit tests of the allocator, with the mutant in them."""
        if self.has_tests:
            return
        archive = os.path.join(self.folder, "libgmd_allocator_core.a")
        if os.path.exists(archive):
            os.unlink(archive)
        objects = [self.changed.get(s, self.shop.object_of(s)) for s in self.shop.sources if s != "plugin.c"]
        run_tool(["ar", "rcs", archive, *objects], self.shop.build)
        made = {"allocator/libgmd_allocator_core.a": archive, **self._test_objects()}
        for name, command in self.shop.tests.items():
            words = [made.get(w, w) for w in command]
            words[words.index("-o") + 1] = os.path.join(self.folder, name)
            run_tool(words, self.shop.build)
        self.has_tests = True

    def _test_objects(self):
        """For a header's mutant: the tests that include it, with the mutant's inline functions."""
        if not self.mutant or not self.mutant.file.endswith(".h"):
            return {}
        made = {}
        with self._mutated(self.mutant):
            for name, words in self.shop.test_commands.items():
                made[name] = os.path.join(self.folder, "objects", os.path.basename(name))
                self.shop.compile_test(words, self.shadow, made[name])
        return made


def _output(entry):
    words = shlex.split(entry["command"])
    return words[words.index("-o") + 1]


def _same(one, other):
    with open(one, "rb") as a, open(other, "rb") as b:
        return a.read() == b.read()
