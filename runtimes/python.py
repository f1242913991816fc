# SPDX-License-Identifier: Apache-2.0
"""Driver of a Python context of the code interpreter: runs the cells that it reads, and says what came of them.

Requests come by standard input, which is moved to another number, so that the code has nothing to do with it. What it
says stands in frames in its outputs, among what the code writes there. One line of JSON is one message
(doc/format/service.md).
"""
import ast
import base64
import fcntl
import inspect
import json
import linecache
import os
import re
import select
import signal
import sys
import traceback
import types

LINE_MAX = 8 << 20
FRAME_MAX = 4096
MARK = b"\x1e" + sys.argv[2].encode()
CELL_FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
# Of an object: the method of each format, and the name that clients have for it.
METHODS = {
    "_repr_html_": "html", "_repr_markdown_": "markdown", "_repr_svg_": "svg", "_repr_png_": "png",
    "_repr_jpeg_": "jpeg", "_repr_pdf_": "pdf", "_repr_latex_": "latex", "_repr_json_": "json",
    "_repr_javascript_": "javascript",
}
FORMATS = {
    "text/plain": "text", "text/html": "html", "text/markdown": "markdown", "image/svg+xml": "svg",
    "image/png": "png", "image/jpeg": "jpeg", "application/pdf": "pdf", "text/latex": "latex",
    "application/json": "json", "application/javascript": "javascript", "e2b/data": "data", "e2b/chart": "chart",
}


def plain(value, depth=0):
    """The same in what JSON has: finite numbers that fit, text that is UTF-8, no NUL, not too deep."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
    if isinstance(value, int):
        return int(value) if -2**63 <= value < 2**63 else str(value)
    if isinstance(value, float):
        return float(value) if value - value == 0 else None
    if depth < 16 and isinstance(value, dict):
        return {plain(str(key)): plain(one, depth + 1) for key, one in value.items()}
    if depth < 16 and isinstance(value, (list, tuple)):
        return [plain(one, depth + 1) for one in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "item"):
        try:
            return plain(value.item(), depth + 1)
        except (TypeError, ValueError):
            pass
    return plain(str(value))


class Channel:
    """Both ways. A process that the code forked says nothing on it."""

    def __init__(self):
        self.input, self.output, self.error = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 100) for fd in range(3))
        self.owner, self.number, self.rest = os.getpid(), 0, b""
        self.is_saying = self.is_interrupted = False
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)

    def say(self, kind, **values):
        if os.getpid() != self.owner:
            return
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (AttributeError, OSError, ValueError):
                pass
        line = json.dumps({"id": self.number, "type": kind, **values}).encode() + b"\n"
        # An interrupt waits until the line is whole.
        self.is_saying = True
        try:
            for fd in (self.error, self.output) if kind == "end" else (self.output,):
                self.write(fd, line)
        finally:
            self.is_saying = False
        if self.is_interrupted:
            self.is_interrupted = False
            raise KeyboardInterrupt

    @staticmethod
    def write(fd, line):
        """Frames that a pipe takes as a whole; the code may have made it one that does not wait."""
        room = FRAME_MAX - len(MARK) - 4
        for at in range(0, len(line), room):
            piece = line[at:at + room]
            frame = MARK + b"%04x" % len(piece) + piece
            while True:
                try:
                    os.write(fd, frame)
                    break
                except BlockingIOError:
                    select.select((), (fd,), ())

    def read(self):
        """The next request; None at the end."""
        while b"\n" not in self.rest:
            piece = os.read(self.input, 1 << 16)
            if not piece:
                return None
            self.rest += piece
        line, self.rest = self.rest.split(b"\n", 1)
        return json.loads(line)


def text_of(value):
    """What IPython shows of it as text: short collections on one line."""
    try:
        shown = repr(value)
        if isinstance(value, (dict, list, tuple, set)) and len(shown) > 79:
            import pprint
            shown = pprint.pformat(value, width=79, compact=True, sort_dicts=False)
    except Exception as error:  # pylint: disable=broad-except
        shown = f"<{type(value).__name__} whose repr failed: {type(error).__name__}>"
    return shown


def call_method(value, name):
    """What a method of an object gives, or None: classes have the methods of their objects, which want one."""
    if isinstance(value, type):
        return None
    try:
        method = getattr(value, name, None)
        return method() if callable(method) else None
    except Exception:  # pylint: disable=broad-except
        return None


def formats_of(value):
    """All that can be shown of an object, by the names of clients."""
    shown = {"text": text_of(value)}
    bundle = call_method(value, "_repr_mimebundle_")
    bundle = bundle[0] if isinstance(bundle, tuple) and bundle else bundle
    if isinstance(bundle, dict):
        for kind, content in bundle.items():
            shown[FORMATS.get(kind, str(kind))] = content
    for method, name in METHODS.items():
        content = call_method(value, method) if name not in shown else None
        if content is not None:
            shown[name] = content[0] if isinstance(content, tuple) else content
    pandas = sys.modules.get("pandas")
    if pandas and isinstance(value, getattr(pandas, "DataFrame", ())):
        try:
            shown["data"] = value.to_dict(orient="list")
        except Exception:  # pylint: disable=broad-except
            pass
    figure = sys.modules.get("matplotlib.figure")
    if figure and isinstance(value, figure.Figure):
        shown.update(figure_formats(value))
    return {name: plain(content) for name, content in shown.items()
            if name not in ("id", "type", "is_main_result") and content is not None}


def give(shown, is_main):
    """Says a result; of one that is too large, the text alone."""
    size = sum(len(content) if isinstance(content, str) else len(json.dumps(content)) for content in shown.values())
    if size > LINE_MAX * 3 // 4:
        text = shown.get("text", "")[:LINE_MAX // 16]
        shown = {"text": text or "<a result that is too large to be shown>"}
    channel.say("result", is_main_result=is_main, **shown)


# pylint: disable=redefined-builtin
def display(*values, raw=False, **_):
    """As that of IPython: each value is a result of its own; raw: they are bundles of formats already."""
    for value in values:
        if raw and isinstance(value, dict):
            give({FORMATS.get(kind, str(kind)): plain(content) for kind, content in value.items()}, False)
        else:
            give(formats_of(value), False)


# ---- figures ----

def scale_and_ticks(axes, name):
    axis = getattr(axes, f"{name}axis")
    locator = type(axis.get_major_locator()).__name__
    ticks, scale = list(axis.get_ticklocs()), axis.get_scale()
    if "Date" in locator:
        ticks, scale = [sys.modules["matplotlib.dates"].num2date(tick) for tick in ticks], "datetime"
    elif "Category" in locator:
        scale = "categorical"
    return {f"{name}_ticks": ticks, f"{name}_scale": scale,
            f"{name}_tick_labels": [label.get_text() for label in axis.get_ticklabels()]}


def labels_and_units(axes):
    found = {}
    for name in ("x", "y"):
        label = getattr(axes, f"get_{name}label")()
        unit = re.search(r"\(([^()]+)\)\s*$", label)
        found[f"{name}_label"], found[f"{name}_unit"] = label or None, unit.group(1) if unit else None
    return found


def coordinates(values):
    """Those of a line; dates are numbers of nanoseconds in an array of them."""
    if getattr(getattr(values, "dtype", None), "kind", "") == "M":
        return values.astype("datetime64[ms]").tolist()
    return list(values)


def line_elements(axes):
    return [{"label": line.get_label(),
             "points": [list(point) for point in zip(coordinates(line.get_xdata()), coordinates(line.get_ydata()))]}
            for line in axes.get_lines()]


def scatter_elements(axes):
    return [{"label": group.get_label(), "points": [list(point) for point in group.get_offsets().tolist()]}
            for group in axes.collections if hasattr(group, "get_offsets")]


def bar_elements(axes):
    elements = []
    for container in axes.containers:
        bars = [bar for bar in container if hasattr(bar, "get_height")]
        # Those that lie down have their names on the other axis.
        lies = len({bar.get_x() for bar in bars}) == 1 and len(bars) > 1
        axis = axes.yaxis if lies else axes.xaxis
        names = dict(zip((float(tick) for tick in axis.get_ticklocs()),
                         (label.get_text() for label in axis.get_ticklabels())))
        for bar in bars:
            start, length = (bar.get_y(), bar.get_height()) if lies else (bar.get_x(), bar.get_width())
            middle = float(start + length / 2)
            near = min(names, key=lambda at, middle=middle: abs(at - middle), default=middle)
            elements.append({"label": names.get(near) or str(middle), "group": container.get_label(),
                             "value": bar.get_width() if lies else bar.get_height()})
    return elements


def box_elements(axes):
    """Of a box plot, which draws for each box: itself (a patch, or a line of five points), two whiskers, two caps, the
    median and what lies outside."""
    lines = [coordinates(line.get_ydata()) for line in axes.get_lines()]
    patches = [patch for patch in axes.patches if type(patch).__name__ == "PathPatch"]
    size = 6 if patches and len(lines) == 6 * len(patches) else 7
    groups = [lines[at:at + size][-6:] for at in range(0, len(lines), size)]
    boxes = lines[::7] if size == 7 else []
    if not groups or len(lines) % size or any(len(box) != 5 for box in boxes) or \
            any([len(line) for line in group[:5]] != [2] * 5 for group in groups):
        return []
    labels = [label.get_text() for label in axes.xaxis.get_ticklabels()]
    return [{"label": label, "min": low[1], "first_quartile": low[0], "median": median[0],
             "third_quartile": high[0], "max": high[1], "outliers": outside}
            for label, (low, high, _, _, median, outside) in zip(labels, groups)]


def pie_elements(axes):
    wedges = [patch for patch in axes.patches if type(patch).__name__ == "Wedge"]
    return [{"label": wedge.get_label(), "angle": round(wedge.theta2 - wedge.theta1, 4), "radius": wedge.r}
            for wedge in wedges]


def chart_of_axes(axes):
    """Data of one pair of axes, by what is drawn in it."""
    chart = {"title": axes.get_title() or None}
    if pie_elements(axes):
        return {**chart, "type": "pie", "elements": pie_elements(axes)}
    chart.update(labels_and_units(axes))
    if axes.containers and bar_elements(axes):
        return {**chart, "type": "bar", "elements": bar_elements(axes)}
    if box_elements(axes):
        return {**chart, "type": "box_and_whisker", "elements": box_elements(axes)}
    for kind, elements in (("line", line_elements(axes)), ("scatter", scatter_elements(axes))):
        if elements:
            return {**chart, **scale_and_ticks(axes, "x"), **scale_and_ticks(axes, "y"), "type": kind,
                    "elements": elements}
    return {**chart, "type": "unknown", "elements": []}


def figure_formats(figure):
    import io
    image = io.BytesIO()
    figure.savefig(image, format="png", bbox_inches="tight")
    shown = {"png": image.getvalue()}
    try:
        charts = [chart_of_axes(axes) for axes in figure.get_axes()]
    except Exception:  # pylint: disable=broad-except
        return shown
    if len(charts) == 1:
        shown["chart"] = charts[0]
    elif charts:
        title = getattr(figure, "_suptitle", None)
        shown["chart"] = {"type": "superchart", "title": title.get_text() if title else None, "elements": charts}
    return shown


def show_figures(shown=None):
    """Those that are open, once."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if not pyplot:
        return
    for number in pyplot.get_fignums():
        figure = pyplot.figure(number)
        if figure.get_axes() and figure is not shown:
            display(figure)
    pyplot.close("all")


# ---- modules that the code may expect ----

class Shown:
    """What is shown in one format."""
    method = "_repr_html_"

    def __init__(self, data=None, **_):
        self.data = data

    def __repr__(self):
        return f"<IPython.core.display.{type(self).__name__} object>"


class Image(Shown):
    def __init__(self, data=None, filename=None, **_):
        super().__init__(data)
        if filename or isinstance(data, str):
            with open(filename or data, "rb") as file:
                self.data = file.read()

    def _repr_mimebundle_(self, **_):
        is_png = self.data[:4] == b"\x89PNG"
        return {"image/png" if is_png else "image/jpeg": self.data}


def make_package(module):
    """Libraries that find it ask whether they run in its shell."""
    module.get_ipython = lambda: None


def make_display_module(module):
    module.display, module.Image = display, Image
    module.clear_output = lambda *_, **__: None
    for name, method in (("HTML", "_repr_html_"), ("Markdown", "_repr_markdown_"), ("SVG", "_repr_svg_"),
                         ("Latex", "_repr_latex_"), ("JSON", "_repr_json_"), ("Javascript", "_repr_javascript_")):
        setattr(module, name, type(name, (Shown,), {method: lambda self: self.data}))


def make_backend(module):
    """Of matplotlib: figures are results."""
    from matplotlib.backends import backend_agg
    module.FigureCanvas = backend_agg.FigureCanvasAgg
    module.show = lambda *_, **__: show_figures()


class Finder:
    """Makes modules that are not installed; of IPython's own, display() shows what it is given here."""
    makers = {"IPython": make_package, "IPython.display": make_display_module, "atoll_figures": make_backend}

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        from importlib.machinery import ModuleSpec
        if name not in cls.makers:
            return None
        others = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not cls)
        installed = next((spec for spec in others if spec), None)
        if not installed:
            return ModuleSpec(name, cls, is_package=name == "IPython")
        if name == "IPython.display":
            load = installed.loader.exec_module

            def load_and_change(module):
                load(module)
                module.display = display
            installed.loader.exec_module = load_and_change
        return installed

    @staticmethod
    def create_module(spec):
        return types.ModuleType(spec.name)

    @classmethod
    def exec_module(cls, module):
        cls.makers[module.__name__](module)


# ---- cells ----

class Interpreter:
    def __init__(self):
        self.count, self.loop, self.is_running = 0, None, False
        self.main = types.ModuleType("__main__")
        self.names = self.main.__dict__
        self.names.update(display=display, __builtins__=__builtins__)
        sys.modules["__main__"] = self.main

    def interrupt(self, *_):
        if self.is_running and channel.is_saying:
            channel.is_interrupted = True
        elif self.is_running:
            raise KeyboardInterrupt

    def evaluate(self, code):
        """Of compiled code, which may await."""
        value = eval(code, self.names)  # pylint: disable=eval-used
        if code.co_flags & inspect.CO_COROUTINE:
            import asyncio
            if not self.loop:
                self.loop = asyncio.new_event_loop()
                asyncio.set_event_loop(self.loop)
            value = self.loop.run_until_complete(value)
        return value

    def compile(self, source, name):
        """The statements and, of a cell that ends with an expression, that one: code, or None."""
        source = without_indent(source)
        try:
            tree = compile(source, name, "exec", CELL_FLAGS | ast.PyCF_ONLY_AST)
        except SyntaxError:
            changed = with_commands(source)
            if changed == source:
                raise
            tree = compile(changed, name, "exec", CELL_FLAGS | ast.PyCF_ONLY_AST)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";"):
            last = compile(ast.Expression(tree.body.pop().value), name, "eval", CELL_FLAGS)
        return compile(tree, name, "exec", CELL_FLAGS), last

    def run(self, source):
        self.count += 1
        channel.say("number_of_executions", execution_count=self.count)
        name = f"<cell {self.count}>"
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        try:
            self.is_running = True
            body, last = self.compile(source, name)
            self.evaluate(body)
            value = self.evaluate(last) if last else None
            if value is not None:
                self.names["_"] = value
                give(formats_of(value), True)
            show_figures(value)
        except BaseException as error:  # pylint: disable=broad-except
            self.is_running = False
            channel.is_interrupted = False
            channel.say("error", name=type(error).__name__, value=plain(str(error)),
                        traceback=plain(trace(error, self.count)))
        finally:
            self.is_running = False

    def serve(self):
        while True:
            try:
                request = channel.read()
            except KeyboardInterrupt:
                continue
            if request is None:
                return
            channel.number = request["id"]
            before = dict(os.environ)
            os.environ.update(request["env"])
            self.run(request["code"])
            if os.getpid() != channel.owner:
                os._exit(0)
            for word in request["env"]:
                if word in before:
                    os.environ[word] = before[word]
                else:
                    os.environ.pop(word, None)
            channel.say("end")


def without_indent(source):
    """A cell whose first line is indented, as texts within programs are, is moved to the left."""
    indent = re.match(r"(?:[ \t]*\n)*([ \t]*)", source).group(1)
    return re.sub(rf"^{indent}", "", source, flags=re.M) if indent else source


def with_commands(source):
    """Lines that are no Python, but a command of the shell (!ls) or of pip (%pip)."""
    lines = []
    for line in source.split("\n"):
        found = re.match(r"^(\s*)(?:!|%(?=pip\b))(.+)$", line)
        if found:
            command = found.group(2)
            command = f"{sys.executable} -m {command}" if line.lstrip().startswith("%") else command
            line = f"{found.group(1)}__import__('subprocess').run({command!r}, shell=True) and None"
        elif re.match(r"^\s*%(matplotlib|load_ext|autoreload|config)\b", line):
            line = ""
        lines.append(line)
    return "\n".join(lines)


def trace(error, count):
    """In the manner of IPython: a head, the lines around each frame of a cell, and the error."""
    name = type(error).__name__
    lines = ["-" * 75, name + "Traceback (most recent call last)".rjust(75 - len(name))]
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != "<driver>"]
    for frame in own[-32:]:
        cell = re.fullmatch(r"<cell (\d+)>", frame.filename)
        place = f"Cell In[{cell.group(1)}], line {frame.lineno}" if cell else f"File {frame.filename}:{frame.lineno}"
        lines.append(place + (f", in {frame.name}" if frame.name != "<module>" else ""))
        first = max(1, frame.lineno - 2)
        for at in range(first, frame.lineno + 3):
            text = linecache.getline(frame.filename, at).rstrip("\n")
            if text or at == frame.lineno:
                lines.append(f"{'----> ' if at == frame.lineno else '      '}{at} {text}")
        lines.append("")
    if isinstance(error, SyntaxError):
        lines.append(f"  Cell In[{count}], line {error.lineno}")
    lines += [line.rstrip("\n") for line in traceback.format_exception_only(type(error), error)]
    return "\n".join(lines)


def make_streams():
    """Text is written line by line; what is no UTF-8 must not end the code."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)


def load_ahead(names):
    """Modules that the code of a driver will want which starts before anybody has it: those that are there."""
    for name in names:
        try:
            __import__(name)
        except Exception:  # pylint: disable=broad-except
            pass


channel = Channel()
make_streams()
os.environ.setdefault("MPLBACKEND", "module://atoll_figures")
sys.meta_path.insert(0, Finder)
modules, sys.argv = sys.argv[3:], [""]
sys.path.insert(0, "")
interpreter = Interpreter()
signal.signal(signal.SIGINT, interpreter.interrupt)
load_ahead(modules)
interpreter.serve()
