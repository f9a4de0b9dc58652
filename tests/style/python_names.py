#!/usr/bin/env python3
"""Names in our Python that nobody defines: long tests are not run each time, and another module's function may have moved. Prints TAP."""
import ast
import builtins
import os
import sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
FOLDERS = ('scripts', 'tests')


def programs():
    """Path -> tree."""
    for folder in FOLDERS:
        for where, _, names in os.walk(os.path.join(TOP, folder)):
            for path in (os.path.join(where, name) for name in names):
                with open(path, 'rb') as file:
                    first = file.readline()
                    if path.endswith('.py') or first.startswith(b'#!/usr/bin/env python3'):
                        yield os.path.relpath(path, TOP), ast.parse(first + file.read())


def defined(tree):
    """All that it names, wherever in it: enough to see what has gone."""
    names = {'__file__', '__name__', '__doc__'}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update((one.asname or one.name).split('.')[0] for one in node.names)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
    return names


def missing(trees):
    """`path:line: name` of each that is not there. Modules are told by the last part of their names."""
    modules = {}
    for path, tree in trees:
        modules.setdefault(os.path.basename(path).removesuffix('.py'), set()).update(defined(tree))
    for path, tree in trees:
        own, others = defined(tree) | set(dir(builtins)), {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):  # what is taken out of a package is nobody's of ours
                others.update({one.asname or one.name: one.name for one in node.names if one.name in modules})
            if isinstance(node, ast.ImportFrom) and node.module in modules:
                yield from (f'{path}:{node.lineno}: {node.module}.{one.name}' for one in node.names if one.name not in modules[node.module])
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id not in own:
                yield f'{path}:{node.lineno}: {node.id}'
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr not in modules.get(
                    others.get(node.value.id), {node.attr}):
                yield f'{path}:{node.lineno}: {node.value.id}.{node.attr}'


def check_itself():
    """What is looked for is found."""
    one = ('a/one.py', ast.parse('def there(): pass'))
    other = ('b/other.py', ast.parse('import one\nfrom one import gone\none.there()\none.moved()\nnobody(sum([]))'))
    assert list(missing([one, other])) == ['b/other.py:2: one.gone', 'b/other.py:4: one.moved', 'b/other.py:5: nobody'], list(missing([one, other]))


check_itself()
wrong = list(missing(list(programs())))
print('1..1')
for line in wrong:
    print(f'# {line}: nobody defines that')
print(f'{"not ok" if wrong else "ok"} 1 /style/python-names')
sys.exit(bool(wrong))
