"""A headless Chromium, driven through chromedriver by WebDriver (W3C), with Python's own library alone."""

import json
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request

# Longest that one command may take, in seconds.
PATIENCE = 60
# How WebDriver names an element in its answers.
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"Tab": "\ue004", "Escape": "\ue00c", "ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014", "ArrowDown": "\ue015"}
CONTROL = "\ue009"


class Browser:
    """Runs until the block is left."""

    def __enter__(self):
        self.profile = tempfile.TemporaryDirectory(prefix="sshoal-browser-")
        words = [shutil.which("chromedriver") or "chromedriver", "--port=0", "--log-level=WARNING"]
        self.driver = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        # "ChromeDriver was started successfully on port 12345."
        said = next((line for line in self.driver.stdout if "successfully on port " in line), "")
        self.base = f"http://127.0.0.1:{said.rstrip('. ' + chr(10)).rpartition(' ')[2]}/session"
        arguments = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", f"--user-data-dir={self.profile.name}"]
        wanted = {"browserName": "chrome", "goog:chromeOptions": {"args": arguments, "binary": shutil.which("chromium")}}
        wanted["goog:loggingPrefs"] = {"browser": "ALL"}
        session = self.call("POST", "", {"capabilities": {"alwaysMatch": wanted}})
        self.base += f"/{session['sessionId']}"
        return self

    def __exit__(self, *_):
        try:
            self.call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()
            self.driver.stdout.close()
            self.profile.cleanup()

    def call(self, method, path, body=None):
        data = None if method != "POST" else json.dumps(body or {}).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{method} {path}: {json.load(error)['value']['message']}") from error

    def open(self, path):
        self.call("POST", "/url", {"url": f"file://{path}"})

    def run(self, script, *arguments):
        """What a function's body returns in the page."""
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def errors(self):
        """What the console has said since the last call, but for mere words."""
        said = self.call("POST", "/se/log", {"type": "browser"})
        return [line["message"] for line in said if line["level"] in ("SEVERE", "WARNING")]

    def find(self, selector):
        """The first such element, brought into the window."""
        found = self.call("POST", "/element", {"using": "css selector", "value": selector})
        self.run("arguments[0].scrollIntoView({ block: 'center' })", found)
        return found

    def click(self, selector):
        self.call("POST", f"/element/{self.find(selector)[ELEMENT]}/click")

    def hover(self, selector):
        self.act("pointer", "mouse", [{"type": "pointerMove", "duration": 0, "origin": self.find(selector), "x": 0, "y": 0}])

    def drag(self, selector, by):
        """From the middle of an element to its left or right, in pixels."""
        origin = self.find(selector)
        move = lambda x: {"type": "pointerMove", "duration": 0, "origin": origin, "x": x, "y": 0}  # noqa: E731
        self.act("pointer", "mouse", [move(0), {"type": "pointerDown", "button": 0}, move(by), {"type": "pointerUp", "button": 0}])

    def press(self, *keys):
        """Keys by their names, one after the other, where the focus is."""
        pressed = [KEYS.get(key, key) for key in keys]
        self.act("key", "keyboard", [{"type": kind, "value": key} for key in pressed for kind in ("keyDown", "keyUp")])

    def wheel(self, selector, down):
        """With the control key held."""
        scroll = {"type": "scroll", "duration": 0, "origin": self.find(selector), "x": 0, "y": 0, "deltaX": 0, "deltaY": down}
        pause = {"type": "pause", "duration": 0}
        held = [{"type": "keyDown", "value": CONTROL}, pause, {"type": "keyUp", "value": CONTROL}]
        wheel = {"type": "wheel", "id": "wheel", "actions": [pause, scroll, pause]}
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": held}, wheel]})

    def act(self, kind, name, actions):
        self.call("POST", "/actions", {"actions": [{"type": kind, "id": name, "actions": actions}]})

    def dress(self, scheme):
        """`light` or `dark`, as the system would have it."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.tell("Emulation.setEmulatedMedia", {"features": features})

    def size(self, width, height, scale=1):
        """The window's inside; below 500 pixels it is a phone's."""
        self.tell("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 500})

    def picture(self):
        """The window as PNG, in base64."""
        return self.call("GET", "/screenshot")

    def tell(self, command, parameters):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})
