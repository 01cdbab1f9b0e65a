"""Writes the reference of the Python package from its docstrings: a page for each module, and nothing imported.

    python3 docs/python/make.py            # writes the pages beside itself
    python3 docs/python/make.py FOLDER     # elsewhere
"""

import ast
import html
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
PACKAGE = HERE.parent.parent / "python" / "regard"
STYLE = """:root { color-scheme: light dark }
body { max-width: 56rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif }
pre { overflow-x: auto; padding: .6rem .8rem; border: 1px solid; border-radius: .3rem; font-size: 14px }
section { border-top: 1px solid; margin-top: 1.5rem } section section { border: 0; margin: 0 0 0 1.5rem }
h2, h3 { overflow-wrap: anywhere; font: 600 1rem/1.5 ui-monospace, monospace }"""

Tree = ast.Module | ast.ClassDef
Definition = ast.ClassDef | ast.FunctionDef


def modules() -> dict[str, ast.Module]:
    """The text of each module by its name, private ones too."""
    found = {}
    for path in sorted([*PACKAGE.rglob("*.py"), PACKAGE / "_native.pyi"]):
        parts = ["regard", *path.relative_to(PACKAGE).with_suffix("").parts]
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def is_public(name: str) -> bool:
    return not any(part.startswith("_") for part in name.split("."))


def exported(tree: ast.Module) -> list[str]:
    """What `__all__` names."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(to, ast.Name) and to.id == "__all__" for to in node.targets):
            return sorted(ast.literal_eval(node.value))
    return []


def origins(module: str, trees: dict[str, ast.Module]) -> dict[str, str]:
    """The module that each imported name of the package comes from."""
    is_package = any(other.startswith(f"{module}.") for other in trees)
    package = module if is_package else module.rpartition(".")[0]
    found = {}
    for node in trees[module].body:
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            for one in node.names:
                found[one.asname or one.name] = f"{package}.{node.module}" if node.module else package
    return found


def definitions(tree: Tree) -> dict[str, Definition]:
    """Public classes and functions; of an overloaded one, that which has the docstring."""
    nodes = [node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    return {node.name: node for node in nodes if not node.name.startswith("_")}


def prose(text: str) -> str:
    escaped = html.escape(text, quote=False)
    return re.sub(r"``(.+?)``", r"<code>\1</code>", escaped, flags=re.DOTALL)


def described(text: str | None) -> str:
    """A docstring's paragraphs; examples and what is indented stand as they are."""
    found = []
    for block in (text or "").split("\n\n"):
        is_code = block.startswith((">>>", "    "))
        found.append(f"<pre>{html.escape(block, quote=False)}</pre>" if is_code else f"<p>{prose(block)}</p>")
    return "\n".join(found)


def signature(node: Definition) -> str:
    if isinstance(node, ast.ClassDef):
        init = next((one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
        fields = [one for one in node.body if isinstance(one, ast.AnnAssign)]
        if init is None:
            return f"class {node.name}({', '.join(ast.unparse(field) for field in fields)})"
        return f"class {node.name}({ast.unparse(init.args).removeprefix('self, ')})"
    if any(ast.unparse(one) == "property" for one in node.decorator_list):
        return node.name + (f": {ast.unparse(node.returns)}" if node.returns else "")
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    arguments = re.sub(r"^(self|cls)(, |$)", "", ast.unparse(node.args))
    return f"{node.name}({arguments}){returns}"


def entry(node: Definition, within: str = "") -> str:
    level = 3 if within else 2
    name = f"{within}.{node.name}" if within else node.name
    parts = [f'<section id="{name}"><h{level}>{html.escape(signature(node), quote=False)}</h{level}>']
    parts.append(described(ast.get_docstring(node)))
    if isinstance(node, ast.ClassDef):
        parts += [entry(one, name) for one in definitions(node).values() if ast.get_docstring(one)]
    return "\n".join([*parts, "</section>"])


def summary(text: str | None) -> str:
    return prose(re.split(r"(?<=[.:;])\s|\n\n", text or "", maxsplit=1)[0])


def page(name: str, trees: dict[str, ast.Module]) -> str:
    tree = trees[name]
    own, froms, listed, entries = definitions(tree), origins(name, trees), [], []
    for one in exported(tree) or sorted(own):
        module = froms.get(one, name)
        if one not in own and f"{name}.{one}" in trees:
            told = summary(ast.get_docstring(trees[f"{name}.{one}"]))
            listed.append(f'<li><a href="{name}.{one}.html">{one}</a> {told}</li>')
        elif one not in own and is_public(module):
            node = definitions(trees[module])[one]
            told = summary(ast.get_docstring(node))
            listed.append(f'<li><a href="{module}.html#{one}">{one}</a> {told}</li>')
        else:
            node = own.get(one) or definitions(trees.get(module, tree)).get(one)
            told = entry(node) if node is not None else f'<section id="{one}"><h2>{one}</h2></section>'
            listed.append(f'<li><a href="#{one}">{one}</a></li>')
            entries.append(told)
    inside = [other for other in trees if is_public(other) and other.rpartition(".")[0] == name]
    below = "".join(
        f'<li><a href="{one}.html">{one}</a> {summary(ast.get_docstring(trees[one]))}</li>\n' for one in inside
    )
    more = f"<p>Modules</p>\n<ul>\n{below}</ul>" if inside else ""
    up = "" if name == "regard" else '<p><a href="regard.html">regard</a></p>'
    body = [up, f"<h1>{name}</h1>", described(ast.get_docstring(tree)), f"<ul>{''.join(listed)}</ul>", more, *entries]
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{name}</title>'
    text = f'<!DOCTYPE html>\n<html lang="en">\n<head>{head}<style>\n{STYLE}\n</style></head>\n<body>\n'
    return text + "\n".join(part for part in body if part) + "\n</body>\n</html>\n"


def pages() -> dict[str, str]:
    """All pages by their files' names."""
    trees = modules()
    return {f"{name}.html": page(name, trees) for name in trees if is_public(name)}


if __name__ == "__main__":
    to = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    for old in to.glob("*.html"):
        old.unlink()
    for name, text in pages().items():
        (to / name).write_text(text, encoding="utf-8")
    print(f"wrote {len(pages())} pages to {to}")
