# SPDX-License-Identifier: Apache-2.0
"""A session bus of a test's own, and a notification service on it that does what the test says."""
import json
import subprocess
import threading

from atoll import wait_until

PYTHON = "/usr/bin/python3"
# Runs as the identity. Says what it is asked to show, one JSON object a line; takes commands the same way.
SERVICE = """
import json, sys
import dbus, dbus.service
from dbus.mainloop.glib import DBusGMainLoop
from gi.repository import GLib

NAME, PATH = "org.freedesktop.Notifications", "/org/freedesktop/Notifications"
DBusGMainLoop(set_as_default=True)
bus = dbus.SessionBus()
capabilities = json.loads(sys.argv[1])


def say(**words):
    print(json.dumps(words), flush=True)


class Service(dbus.service.Object):
    last = 0

    @dbus.service.method(NAME, out_signature="as")
    def GetCapabilities(self):
        return dbus.Array(capabilities, signature="s")

    @dbus.service.method(NAME, in_signature="susssasa{sv}i", out_signature="u")
    def Notify(self, app, replaces, icon, summary, body, actions, hints, timeout):
        Service.last = int(replaces) or Service.last + 1
        say(show=Service.last, app=str(app), summary=str(summary), body=str(body), timeout=int(timeout),
            replaces=int(replaces), actions=[str(word) for word in actions], urgency=int(hints.get("urgency", -1)))
        return dbus.UInt32(Service.last)

    @dbus.service.method(NAME, in_signature="u")
    def CloseNotification(self, number):
        say(close=int(number))

    @dbus.service.signal(NAME, signature="us")
    def ActionInvoked(self, number, key):
        pass

    @dbus.service.signal(NAME, signature="uu")
    def NotificationClosed(self, number, why):
        pass


def command(source, condition):
    line = sys.stdin.readline()
    if not line:
        loop.quit()
        return False
    words = json.loads(line)
    if "press" in words:
        service.ActionInvoked(dbus.UInt32(words["press"]), words["key"])
    if "imitate" in words:
        other = dbus.bus.BusConnection(dbus.bus.BusConnection.TYPE_SESSION)
        message = dbus.lowlevel.SignalMessage(PATH, NAME, "ActionInvoked")
        message.append(dbus.UInt32(words["imitate"]), words["key"], signature="us")
        other.send_message(message)
        other.flush()
        say(imitated=words["imitate"])
    return True


name = dbus.service.BusName(NAME, bus)
service = Service(bus, PATH)
loop = GLib.MainLoop()
GLib.io_add_watch(sys.stdin, GLib.IO_IN | GLib.IO_HUP, command)
say(ready=True)
loop.run()
"""


class Desktop:
    """with_service False: a bus on which nobody shows anything."""

    def __init__(self, box, capabilities=("actions", "body", "body-markup"), with_service=True):
        self.box, self.said, self.service = box, [], None
        keywords = box.popen_keywords()
        self.daemon = subprocess.Popen(["dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address=1",
                                        f"--address=unix:path={box.base}/bus"], stdout=subprocess.PIPE,
                                       stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **keywords)
        self.address = self.daemon.stdout.readline().decode().strip()
        self.environment = {"DBUS_SESSION_BUS_ADDRESS": self.address}
        if with_service:
            self.serve(capabilities)

    def serve(self, capabilities=("actions", "body", "body-markup")):
        self.service = subprocess.Popen([PYTHON, "-c", SERVICE, json.dumps(list(capabilities))], text=True,
                                        stdout=subprocess.PIPE, stdin=subprocess.PIPE,
                                        **self.box.popen_keywords(env=self.environment))
        assert json.loads(self.service.stdout.readline()) == {"ready": True}
        threading.Thread(target=self.listen, args=(self.service,), daemon=True).start()

    def listen(self, service):
        for line in service.stdout:
            self.said.append(json.loads(line))

    def tell(self, **words):
        self.service.stdin.write(json.dumps(words) + "\n")
        self.service.stdin.flush()

    def shown(self, count=1):
        wait_until(lambda: len([words for words in self.said if "show" in words]) >= count, 20, "a notification")
        return [words for words in self.said if "show" in words][count - 1]

    def closed(self, number):
        return wait_until(lambda: {"close": number} in self.said, 20, "the notification to be closed")

    def end_service(self):
        self.service.stdin.close()
        self.service.wait(timeout=10)
        self.service = None

    def close(self):
        if self.service:
            self.end_service()
        self.daemon.terminate()
        self.daemon.wait(timeout=10)
