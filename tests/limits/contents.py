"""Files that take little to write and could take much to read: n bytes each."""
import gzip

MEMOIZED = b"\x94"


def text(word):
    return b"\x8c" + bytes([len(word)]) + word


def snapshot_of(keys, records):
    """The keys are memo entries 0, 1...; the records are the events of a device."""
    head = b"\x80\x04(" + b"".join(text(k) + MEMOIZED for k in keys) + b"1}("
    return head + text(b"segments") + b"]" + text(b"device_traces") + b"]](" + records + b"eau."


def tiny_events(n):
    one = b"}(h\0h\x04h\1K\0h\2K\0h\3K\0u"
    return snapshot_of((b"action", b"addr", b"size", b"stream", b"alloc"), one * (n // len(one)))


def tiny_texts(n):
    """A text of its own in each event."""
    def one(i):
        letters = bytes([33 + i % 90, 33 + i // 90 % 90, 33 + i // 8100 % 90])
        return b"}(h\0h\x04h\1K\0h\2K\0h\3K\0h\5" + text(letters) + b"u"
    return snapshot_of((b"action", b"addr", b"size", b"stream", b"alloc", b"user_metadata"),
                       b"".join(one(i) for i in range(n // 26)))


def shared_list(n):
    """One list, again and again."""
    return (b"\x80\x04}(" + text(b"segments") + b"](" + b"N" * (n // 4) + b"e\x94"
            + text(b"device_traces") + b"](" + b"h\0" * (n // 4) + b"eu.")


def objects(n):
    return b'{"outcomes":[' + b"{}," * (n // 3) + b"{}]}"


# name: (the name's end, content, multiples of the content that memory may take)
CONTENTS = {
    "zeros as a trace": (".gmd", lambda n: b"\0" * n, 4),
    "empty lines of a trace": (".gmd", lambda n: b"gmd-trace 1\n" + b"\n" * n, 4),
    "allocations of a trace": (".gmd", lambda n: b"gmd-trace 1\n" + b"".join(
        b"alloc a%x 1 s0\n" % i for i in range(n // 17)), 32),
    "zeros as a pickle": (".pickle", lambda n: b"\0" * n, 4),
    "values of a byte": (".pickle", lambda n: b"\x80\x04](" + b"N" * n + b"e.", 32),
    "empty lists": (".pickle", lambda n: b"\x80\x04](" + b"]" * n + b"e.", 32),
    "empty dicts": (".pickle", lambda n: b"\x80\x04](" + b"}" * n + b"e.", 32),
    "nested tuples": (".pickle", lambda n: b"\x80\x04N" + b"\x85" * n + b".", 32),
    "memoized lists": (".pickle", lambda n: b"\x80\x04](" + b"]\x94" * (n // 2) + b"e.", 32),
    "one list many times": (".pickle", shared_list, 32),
    "tiny events": (".pickle", tiny_events, 32),
    "tiny texts": (".pickle", tiny_texts, 32),
    "numbers of a timeline": (".pickle", lambda n: b"[" + b"[0,0,0,0]," * (n // 10) + b"[0,0,0,0]]",
                              32),
    "lines of RMM's log": (".pickle", lambda n: b"Thread,Time,Action,Pointer,Size,Stream\n" + b"".join(
        b"1,00:00:00:000000,allocate,0x%x,1,0x0\n" % (i + 1) for i in range(n // 42)), 32),
    "empty objects of JSON": (".json", objects, 96),
    "nested JSON": (".json", lambda n: b'{"a":' * (n // 5), 32),
    "packed values": (".pickle.gz", lambda n: gzip.compress(b"\x80\x04](" + b"N" * n + b"e."), 32),
}
