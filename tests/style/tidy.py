#!/usr/bin/env python3
"""The house rules that a machine can check (docs/design/house-style.md). Prints TAP."""
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MAY_INCLUDE = {
    'base': {'base'},
    'proto': {'proto', 'base'},
    'core': {'core', 'proto', 'base'},
    'io': {'io', 'proto', 'base'},
    'backend': {'backend', 'io', 'proto', 'base'},
    'daemons': {'daemons', 'backend', 'io', 'core', 'proto', 'base'},
    'lab': {'lab', 'io', 'proto', 'base'},
    'cli': {'cli', 'lab', 'io', 'proto', 'base'},
}
# The rooms of core/ in their order, and which rooms before it each may include beside itself.
ROOMS = {
    'config': (),
    'locks': (),
    'job': ('config',),
    'import': ('config', 'job'),
    'host': (),
    'report': ('config',),
    'placement': ('config', 'report'),
    'watcher': ('config', 'report', 'placement'),
    'recovery': ('config', 'report', 'placement', 'watcher'),
    'repair': ('config', 'report', 'placement', 'watcher', 'recovery'),
    'query': ('config', 'job', 'report', 'repair', 'recovery'),
    'verify': ('config', 'job', 'report', 'watcher', 'repair', 'query'),
    'ops': ('config', 'locks', 'job', 'report', 'placement', 'repair', 'query', 'verify'),
    'queue': ('config', 'locks', 'job', 'import', 'report', 'placement', 'watcher', 'repair', 'recovery', 'query', 'verify', 'ops'),
    'storage': ('config',),
    'wconfd': ('config', 'locks', 'import', 'storage'),
    'candidate': ('config', 'host', 'wconfd'),
    'epoch': ('config',),
    'member': (),
    'node': ('config', 'host', 'job', 'report', 'epoch', 'member'),
    'confd': ('config',),
    'api': ('config',),
    'monitor': (),
    'rapi': ('job',),
}
# The same below io/ and backend/; the files of the layer itself, in no room, may know all and be known by all.
ROOMS_BELOW = {
    'io': {'net': (), 'sqlite': (), 'etcd': (), 'http': ('net',)},
    'backend': {'storage': (), 'network': (), 'members': (), 'relay': (), 'volume': ('storage',), 'hypervisor': ('storage', 'network')},
}
MOST_FILES = 60 # .c and .h in one folder of src/
FORBIDDEN_IN_CORE = re.compile(
    r'\b(time|gettimeofday|clock_gettime|g_get_monotonic_time|g_get_real_time|rand|random|g_random_\w+|sleep|usleep|'
    r'g_usleep|open|fopen|read|write|socket|fork|system|getenv|g_getenv|g_timeout_add|g_idle_add|g_uuid_string_random)\s*\(')
# Calls of the system by which lock files are made, judged and removed; watching them (inotify) proves nothing.
LIVELOCK_CALLS = {'open', 'close', 'fcntl', 'rename', 'unlink', 'stat', 'fstat', 'getpid'}
SYSTEM_CALL = re.compile(r'(?<![\w.>])(open|openat|close|fcntl|flock|lockf|rename|unlink|stat|fstat|getpid|kill|pidfd_\w+|waitpid|'
                         r'socket|connect|poll|select|clock_gettime|time|sleep|usleep|access|read|write)\s*\(')
REPAIR_PREFIX = 'ganeti:watcher:autorepair'
MAX_LINES = 800
LATER = re.compile(r'\b(TODO|FIXME|XXX|HACK)\b')

points = []


def point(name, problems):
    points.append((name, problems))


def sources(top, endings):
    listing = subprocess.run(['git', '-C', ROOT, 'ls-files', '-co', '--exclude-standard', top], check=True,
                             capture_output=True, text=True).stdout
    return [f for f in listing.splitlines() if f.endswith(endings) and os.path.exists(os.path.join(ROOT, f))]


def text(path):
    with open(os.path.join(ROOT, path), encoding='utf-8') as file:
        return file.read()


def bare(code):
    """Code without comments and strings."""
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', ' ', code, flags=re.S)


def may_not_include(path, header):
    """Why a source may not include a header, in words that end with its name; None: it may."""
    layer, *inner = path.split('/')[1:-1]
    other, *theirs = header.split('/')[:-1]
    if other not in MAY_INCLUDE[layer]:
        return f'{layer}/ may not include {header}'
    if layer != other or not inner or not theirs or inner[0] == theirs[0]:
        return None
    allowed = (ROOMS if layer == 'core' else ROOMS_BELOW.get(layer, {})).get(inner[0])
    return None if allowed is None or theirs[0] in allowed else f'{layer}/{inner[0]}/ may not include {header}'


def check_layers(files):
    problems = []
    for path in files:
        for number, line in enumerate(text(path).splitlines(), 1):
            match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            why = may_not_include(path, match.group(1)) if match else None
            if why:
                problems.append(f'{path}:{number}: {why}')
    return problems


def check_rooms(files):
    """The table of rooms is the tree's, is an order, and refuses what it does not name."""
    names = list(ROOMS)
    found = {path.split('/')[2] for path in files if path.startswith('src/core/')}
    problems = [f'src/core/{room}/ has no line in the table of rooms' for room in sorted(found - set(names))]
    problems += [f'the table has {room}/, which is not there' for room in sorted(set(names) - found)]
    problems += [f'{room}/ may include {other}/, which stands behind it' for at, room in enumerate(names)
                 for other in ROOMS[room] if other not in names[:at]]
    for path, header in (('src/core/config/model.c', 'core/job/rules.h'), ('src/core/watcher/watcher.c', 'core/repair/plan.h'),
                         ('src/io/etcd/etcd_kv.c', 'io/sqlite/sqlite_store.h'), ('src/core/job/rules.c', 'io/loop.h')):
        if not may_not_include(path, header):
            problems.append(f'{path} may include {header}')
    for path, header in (('src/core/job/rules.c', 'core/config/model.h'), ('src/io/net/bus.c', 'io/loop.h')):
        if may_not_include(path, header):
            problems.append(f'{path} may not include {header}')
    folders = [os.path.dirname(path) for path in files if path.endswith(('.c', '.h'))]
    problems += [f'{folder}/ has {count} files, more than {MOST_FILES}' for folder in sorted(set(folders))
                 if (count := folders.count(folder)) > MOST_FILES]
    return problems


# Files of other projects, and stand-ins for names, that text of ours mentions.
ELSEWHERE = {'block/file-posix.c', 'block/mirror.c', 'fs/ext4/ext4.h', 'include/linux/sched.h', 'include/qapi/error.h', 'src/conn.c',
             'src/leader.h', 'src/lib/sm.h', 'gateway.c', 'session.c', 'vas.h', 'x.c', 'x.h', 'test_x.c', 'fuzz_NAME.c'}
MENTION = re.compile(r'(?<![\w./<{-])([\w*./-]*[\w*]\.(?:c|h|def))(?![\w(/-])(?!\.\w)')
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*', re.S)


def check_mentions(files):
    """Every source that a comment or a document names is there; `*` stands for any part of its name."""
    there = '\n'.join('/' + path for path in sources('.', ('.c', '.h', '.def')))
    found, problems = {}, []
    for path in files:
        said = text(path) if path.endswith('.md') else '\n'.join(COMMENT.findall(text(path)))
        for name in MENTION.findall(said):
            if name not in found:
                wanted = '/' + re.escape(name.lstrip('./')).replace(r'\*', '[^/\n]*') + '$'
                found[name] = name in ELSEWHERE or re.search(wanted, there, re.M) is not None
            if not found[name]:
                problems.append(f'{path}: there is no {name}')
    return problems


def check_names(files):
    """Inside of core/ a name tells the file."""
    stems = {}
    for path in files:
        if path.startswith('src/core/'):
            stems.setdefault(os.path.splitext(os.path.basename(path))[0], set()).add(os.path.dirname(path))
    return [f'{stem}: in {" and ".join(sorted(folders))}' for stem, folders in sorted(stems.items()) if len(folders) > 1]


def check_core(files):
    return [f'{path}: core/ may not call {match.group(1)}(); it goes through struct env'
            for path in files if path.startswith('src/core/')
            for match in FORBIDDEN_IN_CORE.finditer(re.sub(r'->\w+\s*\(', ' ', bare(text(path))))]


def check_headers(files):
    problems = []
    for path in files:
        body = text(path)
        if not body.lstrip().startswith('/*'):
            problems.append(f'{path}: begins without a comment that says what it is for')
        if path.endswith('.h') and '#pragma once' not in body:
            problems.append(f'{path}: lacks #pragma once')
    return problems


# Folders that are written by the rules of house-style.md about declarations and pointers.
ONE_HAND = ('src/core/queue/', 'src/core/query/', 'src/core/job/')
BODY = re.compile(r'^\{\n.*?^\}', re.S | re.M)
DECLARATION = re.compile(r'\s+(?:(?:static|const|g_autofree) )*(?!return|goto|case|else)(?:(?:struct|enum|union) \w+|\w+\(\w+\)|\w+)(?: const)?'
                         r' \**(?:const )?(\w+)(?:\[[^]]*\])?(?:;| = |, \**\w+[;,])')
WITHOUT_VALUE = re.compile(r'^( +)(?:(?:const|g_autofree) )*(?!return|goto)(?:(?:struct|enum|union) \w+|\w+\(\w+\)|\w+) '
                           r'(\**\w+(?:, \**\w+)*)(?: = NULL)?;$', re.M)
OPERAND = r'(?:[^&|?:;{}()]|\([^()]*\))*'
POINTERS = (
    (re.compile(r'\bg_ptr_array_index\b'), 'write ->pdata[i]'),
    (re.compile(r'== NULL\b'), 'write !x'),
    (re.compile(rf'!= NULL\s*(?:&&|\|\||\?)|(?:&&|\|\|){OPERAND}!= NULL|\b(?:if|while) \({OPERAND}!= NULL\)|\bfor \([^;{{}}]*;{OPERAND}!= NULL'),
     'a condition is x, not x != NULL'),
)


def after_declarations(lines):
    """At which lines of a function a blank one follows the declarations at the head of a block."""
    for start, line in enumerate(lines):
        at = start + 1
        while line.endswith('{') and not line.endswith('= {') and at < len(lines) and DECLARATION.match(lines[at]):
            while not lines[at].rstrip('# ').endswith(';'):
                at += 1
            at += 1
            if not lines[at]:
                yield at


def later_values(body):
    """(offset, name) of each variable of a function that is declared before it gets its first value."""
    for found in WITHOUT_VALUE.finditer(body):
        block = re.split(rf'^(?!{found.group(1)}|\n)', body[found.end():], maxsplit=1, flags=re.M)[0]
        for name in re.findall(r'\w+', found.group(2)):
            use = re.search(rf'(?<!->)(?<![\w.]){name}\b', block)
            if use and re.search(rf'^{found.group(1)}$', block[:use.start()].rpartition('\n')[2]) and block[use.end():].startswith(' = '):
                yield found.start(2), name


def by_another_hand(code):
    """(line, what is wrong) of code that is not written as house-style.md says."""
    code = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', lambda found: re.sub(r'[^\n]', '#', found.group()), code, flags=re.S)
    found = [(match.start(), why) for pattern, why in POINTERS for match in pattern.finditer(code)]
    for body in BODY.finditer(code):
        begin, lines = body.start(), body.group().split('\n')
        found += [(begin + match.start(), 'write void *') for match in re.finditer(r'\bg(?:const)?pointer\b', body.group())]
        found += [(begin + at, f'declare {name} where it gets its value') for at, name in later_values(body.group())]
        found += [(begin + sum(len(line) + 1 for line in lines[:at]), 'no blank line after declarations') for at in after_declarations(lines)]
    return sorted((code.count('\n', 0, at) + 1, why) for at, why in found)


# What the check must find, and where; the lines not named are right.
BY_ANOTHER_HAND = """static void f(gpointer data)
{
    int b;
    size_t at = 0;

    b = 1;
    gpointer c = g_ptr_array_index(data, at);
    if (c == NULL || data != NULL)
        b = 2;
    bool is = c != NULL;
    g(b, is, c != NULL);
}
"""
FOUND_THERE = [(3, 'declare b where it gets its value'), (5, 'no blank line after declarations'), (7, 'write ->pdata[i]'), (7, 'write void *'),
               (8, 'a condition is x, not x != NULL'), (8, 'write !x')]


def check_hand(files):
    """The folders of ONE_HAND are of one hand."""
    problems = [f'{path}:{line}: {why}' for path in files if path.startswith(ONE_HAND) for line, why in by_another_hand(text(path))]
    found = by_another_hand(BY_ANOTHER_HAND)
    return problems if found == FOUND_THERE else [*problems, f'the check finds {found} in its trial']


def check_umask(files):
    """Every program begins with it."""
    return [f'{path}: main() does not begin with umask(0077)' for path in files if path.endswith('/main.c') and
            not re.search(r'^int main\(int argc, char \*\*argv\)\n{\n    umask\(0077\);', text(path), re.M)]


def check_rows_used(files):
    """Every error, opcode and method must be used by code outside of its table."""
    code = '\n'.join(text(path) for path in files if not path.endswith('.def'))
    words = set(re.findall(r'\w+', code))
    problems = []
    for name in re.findall(r'^ERROR\((\w+),', text('src/base/error.def'), re.M):
        if not words & {name, f'FETTLE_ERROR_{name}'}:
            problems.append(f'error.def: {name} is used nowhere')
    for table in ('methods', 'storage/methods'):
        for server, name in re.findall(r'^METHOD\((\w+), (\w+),', text(f'src/proto/{table}.def'), re.M):
            if f'"{name}"' not in code:
                problems.append(f'{table}.def: {server}.{name} is used nowhere')
    for identifier, record in re.findall(r'^OP_BEGIN\((\w+), (\w+),', text('src/proto/opcodes.def'), re.M):
        if record not in words and f'OP_{identifier}' not in code:
            problems.append(f'opcodes.def: {identifier} is used nowhere')
    limits = re.findall(r'^#define (LIMIT_\w+)', text('src/base/limits.h'), re.M)
    everything = code + '\n'.join(text(f'src/proto/{t}.def') for t in ('records', 'storage/records', 'opcodes', 'methods', 'storage/methods', 'luxi'))
    everything = everything.replace(text('src/base/limits.h'), '')
    words = set(re.findall(r'\w+', everything))
    problems += [f'limits.h: {name} is used nowhere' for name in limits if name not in words]
    return problems


def check_routes():
    """Each route of the API has a test that has seen it answered: one whose list routes[] has the beginning of its name."""
    lists = [match for path in sources('tests/unit/core/api', ('.c',)) if 'routes_seen_assert(routes)' in text(path)
             for match in re.findall(r'routes\[\] = {(.*?)}', text(path), re.S)]
    words = tuple(re.findall(r'"(\w+)"', '\n'.join(lists)))
    return [f'{path}: no test sees {name} answered' for path in sources('src/proto/api', ('.def',))
            for name in re.findall(r'^ROUTE\(.*?, \d+, (\w+), "', text(path), re.M) if not name.startswith(words)]


def check_format(files):
    problems = []
    for start in range(0, len(files), 40):
        run = subprocess.run(['clang-format', '--dry-run', '-Werror', *files[start:start + 40]], cwd=ROOT,
                             capture_output=True, text=True, check=False)
        problems += sorted({line.split(':')[0] + ': not formatted; run `make format`'
                            for line in run.stderr.splitlines() if 'clang-format-violations' in line})
    return problems


SHARED_HEADERS = '#include <glib.h>\n#include <jansson.h>\n#include "proto/records.h"\n'


def clang_commands():
    """(source, folder, command) of each source; all with the flags on which a precompiled header depends."""
    build = os.environ.get('FETTLE_BUILD', os.path.join(ROOT, 'build/check'))
    with open(os.path.join(build, 'compile_commands.json'), encoding='utf-8') as file:
        commands = json.load(file)
    everything = os.environ.get('FETTLE_LONG') == '1'
    for entry in {entry['file']: entry for entry in commands}.values():
        path = os.path.relpath(os.path.join(entry['directory'], entry['file']), ROOT)
        if not everything and not path.startswith('src/'):
            continue
        words = entry['command'].split()
        words = words[2 if os.path.basename(words[0]) == 'ccache' else 1:]
        out = words.index('-o')
        del words[out:out + 2]
        words = [w.strip("'").replace('\\"', '"') for w in words if w != '-c' and not w.startswith('-M') and w != '-fPIE']
        words = [w for w in words if not w.startswith(('-fsanitize', '-fdiagnostics-color')) and not w.endswith(('.d', '.o'))]
        yield (entry['file'], entry['directory'],
               ['clang', '-Wno-unknown-warning-option', *words, '-Wno-unused-variable', '-U_FORTIFY_SOURCE', '-O0', '-g0', '-fPIC',
                '-pthread'])


def precompiled(folder, jobs):
    """What most sources include, read once: a file for `-include-pch`."""
    _, directory, words = next(job for job in jobs if job[0].endswith('/core/ops/runner.c'))
    header, out = os.path.join(folder, 'shared.h'), os.path.join(folder, 'shared.pch')
    with open(header, 'w', encoding='utf-8') as file:
        file.write(SHARED_HEADERS)
    subprocess.run([*(w for w in words if not w.endswith('.c')), '-x', 'c-header', header, '-o', out], cwd=directory, check=True)
    return out


def check_clang():
    """The sources compile without a warning under clang too, which takes for unused what only its cleanup uses. With
    FETTLE_LONG=1 the tests' do as well, which takes minutes more.
    """
    problems, running, jobs = [], [], list(clang_commands())
    with tempfile.TemporaryDirectory(prefix='fettle-tidy-') as folder:
        shared = precompiled(folder, jobs)
        for name, directory, words in jobs:
            process = subprocess.Popen([*words, '-include-pch', shared, '-fsyntax-only'], cwd=directory, stderr=subprocess.PIPE,
                                       text=True)
            running.append((name, process))
            if len(running) >= 2:
                problems += finish(running.pop(0))
        for item in running:
            problems += finish(item)
    return problems


def finish(item):
    name, process = item
    lines = process.communicate()[1].splitlines()
    if not process.returncode:
        return []
    return [f'{name}: {line}' for line in [line for line in lines if 'error: ' in line][:3] or lines[-1:] or ['clang failed']]


def main():
    os.chdir(ROOT)
    files = sources('src', ('.c', '.h', '.def'))
    code = [f for f in files if f.endswith(('.c', '.h'))]
    tests = [f for f in sources('tests', ('.c', '.h'))]
    documents = ['README.md', *sources('docs/design', '.md'), *sources('docs/guide', '.md'), *sources('tests', '.md')]
    point('/style/layering', check_layers(code))
    point('/style/rooms-are-an-order', check_rooms(code))
    point('/style/no-name-twice-in-core', check_names(code))
    point('/style/mentioned-files-are-there', check_mentions(files + tests + documents))
    point('/style/core-is-pure', check_core(code))
    point('/style/files-say-what-they-are-for', check_headers(code + tests))
    point('/style/no-file-over-800-lines',
          [f'{f}: {n} lines' for f in code + tests if (n := len(text(f).splitlines())) > MAX_LINES])
    point('/style/nothing-left-for-later', [f'{f}: {m.group(0)}' for f in code + tests for m in LATER.finditer(text(f))])
    point('/style/every-row-is-used', check_rows_used(files))
    point('/style/routes-have-tests', check_routes())
    point('/style/programs-keep-others-out#SAF-107', check_umask(code))
    point('/style/repair-tags-are-read-in-one-place#ARP-05',
          [f for f in code if REPAIR_PREFIX in text(f) and f != 'src/proto/repair_tag.h'] +
          [f for f in code if 'proto/repair_tag.h"' in text(f) and not f.startswith(('src/core/repair/', 'src/cli/commands/repair'))])
    point('/style/lock-files-by-posix-calls#DTH-05',
          [f'src/io/livelock.c: calls {name}' for name in
           sorted(set(SYSTEM_CALL.findall(bare(text('src/io/livelock.c')))) - LIVELOCK_CALLS)])
    point('/style/one-hand', check_hand(code))
    point('/style/clang-format', check_format(code + tests))
    point('/style/clang-compiles-without-warning', check_clang())
    print(f'1..{len(points)}')
    for number, (name, problems) in enumerate(points, 1):
        print(('not ok' if problems else 'ok') + f' {number} {name}')
        for problem in problems[:40]:
            print('# ' + problem)
    sys.exit(1 if any(problems for _, problems in points) else 0)


main()
