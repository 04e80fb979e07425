# The tools of this run as functions. Each call is a line of JSON over a socket that only this run can use.
import difflib, json, keyword, linecache, os, pydoc, re, socket, sys, threading, traceback, types

AT_ONCE = 8


class ToolError(Exception):
    """A call that failed. `kind` is the error kind, `message` the text, and `data` further facts, if any."""

    def __init__(self, kind, message, data=None):
        super().__init__(f"{kind}: {message}")
        self.kind, self.message, self.data = kind, message, data


class Wire:
    """Connections to the socket, one request and one answer at a time on each."""

    def __init__(self, path):
        self.path = path
        self.forget()
        os.register_at_fork(after_in_child=self.forget)

    def forget(self):
        self.idle, self.turns = [], threading.BoundedSemaphore(AT_ONCE)

    def connection(self):
        try:
            return self.idle.pop()
        except IndexError:
            one = socket.socket(socket.AF_UNIX)
            one.connect(self.path)
            return one.makefile("rwb")

    def ask(self, request):
        line = json.dumps(request, ensure_ascii=False, allow_nan=False, default=os.fspath).encode() + b"\n"
        if not self.path:
            raise ToolError("unavailable", "this run has no tools")
        with self.turns:
            answer = b""
            try:
                connection = self.connection()
                try:
                    connection.write(line)
                    connection.flush()
                finally:
                    # A line that was not received completely may have an answer with the reason.
                    answer = connection.readline()
            except OSError as error:
                if not answer:
                    raise ToolError("unavailable", f"the tools of this run cannot be reached: {error}") from None
            if not answer:
                raise ToolError("unavailable", "the connection to the tools of this run is closed")
            answer = json.loads(answer)
            if "error" not in answer:
                self.idle.append(connection)
                return answer
        error = answer["error"]
        raise ToolError(error["kind"], error["message"], error.get("data"))


class Tool:
    def __init__(self, wire, name, parameters, required):
        self.__name__ = self.name = name
        self.parameters, self.required, self.wire = parameters, required, wire

    def __call__(self, *args, **kwargs):
        return value(self.wire.ask({"call": self.name, "arguments": self.arguments(args, kwargs)})["result"])

    def arguments(self, args, kwargs):
        if len(args) == 1 and isinstance(args[0], dict) and not kwargs:
            return args[0]
        if len(args) > len(self.parameters):
            raise TypeError(f"{self} is called with {len(args)} arguments")
        given = dict(zip(self.parameters, args))
        for name, argument in kwargs.items():
            if name not in self.parameters and name.endswith("_") and name[:-1] in self.parameters:
                name = name[:-1]
            if name in given:
                raise TypeError(f"{self} is given `{name}` twice")
            given[name] = argument
        return {name: argument for name, argument in given.items() if argument is not None}

    def __repr__(self):
        return f"{self.name}({signature(self)})"

    @property
    def __doc__(self):
        return self.wire.ask({"list": self.name})["tools"][0].get("description", "")


class Tools:
    """The tools of this run: `tools.NAME(parameter=value)`, or `tools["NAME"](...)` for a name that is not a Python identifier."""

    ToolError = ToolError

    def __init__(self, wire, table):
        every = [Tool(wire, *row) for row in table]
        vars(self).update(_wire=wire, _named={tool.name: tool for tool in every}, _attributes={})
        for tool in every:
            self._attributes.setdefault(attribute(tool.name), []).append(tool)

    def __getitem__(self, name):
        if name in self._named:
            return self._named[name]
        near = difflib.get_close_matches(name, self._named, 3)
        hint = f"; did you mean {', '.join(near)}?" if near else "; print(tools.list()) lists the tools"
        raise KeyError(f"this run has no tool {name!r}{hint}")

    def __getattr__(self, name):
        found = [self._named[name]] if name in self._named else self._attributes.get(name, ())
        if len(found) > 1:
            raise AttributeError(f"`{name}` is ambiguous: {', '.join(tool.name for tool in found)}; write tools[...]")
        try:
            return found[0] if found else self[name]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def __iter__(self):
        return iter(self._named)

    def __dir__(self):
        return ["call", "help", "list", *self._attributes]

    def call(self, name, arguments=None):
        """Calls the tool of this name."""
        return value(self._wire.ask({"call": name, "arguments": arguments or {}})["result"])

    def list(self):
        """The names of the tools, with their parameters."""
        return {name: f"({signature(tool)})" for name, tool in self._named.items()}

    def help(self, name=None):
        """Describes a tool, or lists all tools with a sentence each."""
        name = getattr(name, "name", name)
        if name is None:
            told = self._wire.ask({"list": True})["tools"]
            return "\n".join(f"{self._named.get(tool['name'], tool['name'])}: {first_sentence(tool)}" for tool in told)
        tool = self._wire.ask({"list": self[name].name})["tools"][0]
        lines = [repr(self[name]), tool.get("description", "")]
        schema = tool.get("inputSchema", {})
        for parameter, what in schema.get("properties", {}).items():
            is_required = ", required" if parameter in schema.get("required", ()) else ""
            kind = what.get("type", "any") if isinstance(what, dict) else "any"
            said = what.get("description", "") if isinstance(what, dict) else ""
            among = f" One of {json.dumps(what['enum'])}." if isinstance(what, dict) and "enum" in what else ""
            lines.append(f"- {parameter} ({kind}{is_required}): {said}{among}")
        return "\n".join(lines)


def attribute(name):
    """The name as a Python identifier."""
    name = re.sub(r"\W", "_", name)
    name = f"_{name}" if name[:1].isdigit() else name
    return f"{name}_" if keyword.iskeyword(name) or name in ("call", "help", "list") else name


def signature(tool):
    """The parameters; one with `=` may be left out."""
    return ", ".join(name + ("" if name in tool.required else "=") for name in tool.parameters)


def first_sentence(tool):
    return re.split(r"(?<=\.)\s", tool.get("description", ""), maxsplit=1)[0]


def value(result):
    """The structured content of a result, else its text; other blocks are unchanged."""
    blocks = result.get("content") or []
    is_text = all(block.get("type") == "text" for block in blocks)
    text = "\n".join(block["text"] for block in blocks if block.get("type") == "text")
    if result.get("isError"):
        kind = (result.get("_meta") or {}).get("toolstead/errorKind", "execution_failed")
        raise ToolError(kind, text, result.get("structuredContent"))
    if result.get("structuredContent") is not None:
        return result["structuredContent"]
    return text if is_text else blocks


def shown(error, seen=()):
    """Formats an exception like Python, with only the frames of the caller's own code."""
    told = traceback.TracebackException.from_exception(error)
    every = [told]
    for one in every:
        one.stack[:] = [frame for frame in one.stack if frame.filename not in (__file__, "<string>")]
        every += [other for other in (one.__cause__, one.__context__) if other]
    return "".join(told.format() if told.stack else told.format_exception_only())


def run(code):
    ToolError.__module__ = "builtins"
    tools = Tools(Wire(os.environ.get("TOOLSTEAD_TOOLS")), given["tools"])

    def help(thing=tools):
        is_ours = thing is tools or isinstance(thing, Tool)
        print(tools.help(None if thing is tools else thing) if is_ours else pydoc.plain(pydoc.render_doc(thing)))

    main = types.ModuleType("__main__")
    vars(main).update(tools=tools, ToolError=ToolError, help=help)
    sys.modules["__main__"] = main
    sys.argv = ["code.py"]
    sys.path.insert(0, os.getcwd())
    linecache.cache["code.py"] = len(code), None, code.splitlines(True), "code.py"
    sys.stdout.reconfigure(line_buffering=True)
    try:
        exec(compile(code, "code.py", "exec", dont_inherit=True), vars(main))
    except SystemExit:
        raise
    except BaseException as error:
        sys.stdout.flush()
        sys.stderr.write(shown(error))
        sys.exit(1)


run(given["code"])
