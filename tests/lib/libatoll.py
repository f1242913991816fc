# SPDX-License-Identifier: Apache-2.0
"""libatoll by ctypes: what the tests of the library run as the user who starts the sandboxes."""
import ctypes
import os

U64, STRING, BYTES, STRINGS, FD = 1, 2, 3, 4, 5
(CONTEXT, POLICY, SANDBOX, COMMAND, FILTER, SNAPSHOT, REVIEW, LOG, ANSWER, LOOK, HOLD, ATTACH,
 ATTRIBUTES, UPDATE, OPEN, READDIR, SHAPE) = range(1, 18)
(EVENT, RESULT, INFO, PROBLEM, CHANGE, QUESTION, GRANT, LINE, COMMAND_INFO, ENTRY) = range(32, 42)
(READY, FAILED, STARTED, OUTPUT, STOPPED, EXIT, DENIAL, ASKED, ANSWERED, ALERT, LIMIT, FROZEN, POLICY_EVENT, LOG_EVENT,
 LOST, DONE, END, WATCH, PARKED) = range(1, 20)
NAMES = ("", "READY", "FAILED", "STARTED", "OUTPUT", "STOPPED", "EXIT", "DENIAL", "QUESTION", "ANSWERED", "ALERT",
         "LIMIT", "FROZEN", "POLICY", "LOG", "LOST", "DONE", "END", "WATCH", "PARKED")
E_INVALID, E_POLICY, E_STATE, E_NOT_FOUND, E_AGAIN, E_TIMEOUT, E_GONE, E_BUSY = -2, -3, -5, -6, -8, -9, -10, -11
E_DENIED, E_CONFLICT, E_LIMIT, E_UNSUPPORTED, E_FORKED, E_PROTOCOL, E_IDENTITY, E_EXISTS, E_NO_MEMORY = (
    -12, -13, -14, -15, -16, -17, -18, -19, -20)

P, U, I, S = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int, ctypes.c_char_p


class CError(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("code", ctypes.c_int32), ("errnum", ctypes.c_int32),
                ("where", ctypes.c_char * 32), ("what", ctypes.c_char * 480), ("why", ctypes.c_char * 160),
                ("hint", ctypes.c_char * 320)]


class Error(Exception):
    def __init__(self, code, error):
        self.code = code
        self.where, self.what, self.hint = error.where.decode(), error.what.decode(), error.hint.decode()
        super().__init__(f"{code}: {self.where}: {self.what}; {self.hint}")


lib = ctypes.CDLL(os.environ.get("LIBATOLL", "libatoll.so.0"), use_errno=True)
for name in ("record_new", "sandbox_free", "id"):
    getattr(lib, "atoll_" + name).restype = P
lib.atoll_record_new.argtypes = [ctypes.c_uint32]
lib.atoll_id.restype, lib.atoll_id.argtypes = S, [P]
lib.atoll_escape.restype, lib.atoll_escape.argtypes = ctypes.c_size_t, [S, ctypes.c_size_t, S, ctypes.c_size_t]


def call(name, *arguments):
    """Calls it with an error behind the arguments; raises what it says."""
    error = CError(size=ctypes.sizeof(CError))
    plain = [argument.handle if isinstance(argument, Record) else argument for argument in arguments]
    result = getattr(lib, "atoll_" + name)(*plain, ctypes.byref(error))
    if result < 0:
        assert error.code == result, (name, result, error.code)
        raise Error(result, error)
    return result


def keys(kind):
    found, index = {}, 0
    key, kind_of, text = S(), ctypes.c_uint32(), S()
    while lib.atoll_keys(ctypes.c_uint32(kind), ctypes.c_size_t(index), ctypes.byref(key), ctypes.byref(kind_of),
                         ctypes.byref(text)) == 1:
        found[key.value.decode()] = (kind_of.value, text.value.decode())
        index += 1
    return found


def raw(text):
    return text if isinstance(text, bytes) else os.fsencode(text)


class Record:
    def __init__(self, kind=None, handle=None, owned=True, **values):
        self.handle = P(handle if handle else lib.atoll_record_new(kind))
        self.owned = owned
        for key, value in values.items():
            self.set(key, value)

    def __del__(self):
        if self.owned:
            lib.atoll_record_free(self.handle)

    def set(self, key, value):
        if isinstance(value, (list, tuple)):
            array = (S * (len(value) + 1))(*[raw(one) for one in value], None)
            call("set_strings", self.handle, S(raw(key)), array)
        elif isinstance(value, Fd):
            call("set_fd", self.handle, S(raw(key)), I(value.number))
        elif isinstance(value, int):
            call("set_u64", self.handle, S(raw(key)), U(value))
        else:
            call("set_string", self.handle, S(raw(key)), S(raw(value)))

    def get(self, key, default=None):
        number, text, size, strings = U(), P(), ctypes.c_size_t(), ctypes.POINTER(S)()
        if lib.atoll_get_u64(self.handle, S(raw(key)), ctypes.byref(number)) == 1:
            return number.value
        if lib.atoll_get_bytes(self.handle, S(raw(key)), ctypes.byref(text), ctypes.byref(size)) == 1:
            return ctypes.string_at(text, size.value)
        if lib.atoll_get_strings(self.handle, S(raw(key)), ctypes.byref(strings)) == 1:
            found = []
            while strings[len(found)]:
                found.append(strings[len(found)])
            return found
        return default

    def take_fd(self, key):
        return lib.atoll_take_fd(self.handle, S(raw(key)))

    def all(self):
        kind = lib.atoll_record_kind(self.handle)
        return {key: self.get(key) for key in keys(kind) if self.get(key) is not None}

    def __repr__(self):
        return f"Record({self.all()})"


class Fd:
    def __init__(self, number):
        self.number = number


def places(environment):
    record = Record(CONTEXT)
    array = [raw(f"{key}={value}") for key, value in environment.items()]
    call("default_places", record.handle, (S * (len(array) + 1))(*array, None))
    return record


class Context:
    def __init__(self, environment=None, **values):
        record = places(os.environ if environment is None else environment)
        for key, value in values.items():
            record.set(key, value)
        self.handle = P()
        call("context_new", record.handle, ctypes.byref(self.handle))

    def policy(self, **values):
        return Policy(self, Record(POLICY, **values))

    def create(self, policy, **values):
        return Handle("create", self.handle, policy.handle, Record(SANDBOX, **values))

    def park(self, policy, **values):
        return Handle("park", self.handle, Record(SHAPE, **values), policy.handle)

    def receive(self, socket):
        return Handle("receive", self.handle, I(socket.fileno()))

    def find(self, name):
        return Handle("find", self.handle, S(raw(name)))

    def list(self, **values):
        return Cursor("list", self.handle, Record(FILTER, **values))

    def free(self):
        lib.atoll_context_free(self.handle)


class Policy:
    def __init__(self, context, record):
        self.handle, self.problems = P(), []
        try:
            call("policy_load", context.handle, record, ctypes.byref(self.handle))
        except Error as error:
            problem, index = P(), 0
            while self.handle and lib.atoll_policy_problem(self.handle, ctypes.c_size_t(index),
                                                           ctypes.byref(problem)) == 1:
                self.problems.append(Record(handle=problem.value, owned=False).all())
                index += 1
            error.problems = self.problems
            raise

    def hash(self):
        memory = ctypes.create_string_buffer(32)
        assert lib.atoll_policy_hash(self.handle, memory) == 0
        return memory.raw.hex()


class Cursor:
    def __init__(self, name, *arguments):
        self.handle = P()
        call(name, *arguments, ctypes.byref(self.handle))

    def next(self):
        row = P()
        return Record(handle=row.value) if call("cursor_next", self.handle, ctypes.byref(row)) == 1 else None

    def fd(self):
        return lib.atoll_cursor_fd(self.handle)

    def rows(self):
        """All of them, waiting where they are not there yet."""
        import select
        found = []
        while True:
            try:
                row = self.next()
            except Error as error:
                if error.code != E_AGAIN:
                    raise
                assert select.select([self.fd()], [], [], 30)[0], "nothing comes"
                continue
            if row is None:
                lib.atoll_cursor_free(self.handle)
                return found
            found.append(row.all())


class Handle:
    """A sandbox."""

    def __init__(self, name, *arguments):
        self.handle = P()
        call(name, *arguments, ctypes.byref(self.handle))
        self.id = lib.atoll_id(self.handle).decode()
        self.seen = []

    def send(self, socket):
        call("send", self.handle, I(socket.fileno()))

    def take(self, policy, **values):
        call("take", self.handle, policy.handle, Record(SANDBOX, **values))
        self.id = lib.atoll_id(self.handle).decode()

    def fd(self):
        return lib.atoll_fd(self.handle)

    def next(self):
        event = P()
        return self.keep(event) if call("next", self.handle, ctypes.byref(event)) == 1 else None

    def wait(self, timeout_ms=20000):
        event = P()
        return self.keep(event) if call("wait", self.handle, I(timeout_ms), ctypes.byref(event)) == 1 else None

    def keep(self, event):
        record = Record(handle=event.value)
        self.seen.append(record)
        return record

    def until(self, kind, timeout_ms=20000):
        while True:
            event = self.wait(timeout_ms)
            assert event is not None, f"no {NAMES[kind]} in time: {self.seen}"
            if event.get("event") == kind:
                return event
            assert event.get("event") != END, f"no {NAMES[kind]} before the end: {self.seen}"

    def request(self, name, *arguments):
        result = P()
        call(name, self.handle, *arguments, None, ctypes.byref(result))
        return Record(handle=result.value)

    def begin(self, name, *arguments):
        ticket = U()
        call(name, self.handle, *arguments, ctypes.byref(ticket), None)
        return ticket.value

    def exec(self, argv, **values):
        return self.request("exec", Record(COMMAND, argv=argv, **values))

    def cursor(self, name, kind=None, **values):
        arguments = [Record(kind, **values)] if kind else []
        return Cursor(name, self.handle, *arguments)

    def info(self):
        record = P()
        call("info", self.handle, ctypes.byref(record))
        return Record(handle=record.value).all()

    def free(self):
        lib.atoll_sandbox_free(self.handle)


def names(handle):
    return [NAMES[event.get("event")] for event in handle.seen]
