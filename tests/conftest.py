"""The fixtures that every test may use; each is described where it lives, in tests/rig."""

pytest_plugins = [
    "tests.rig.reaper",
    "tests.rig.postgres",
    "tests.rig.valkey",
    "tests.rig.databases",
    "tests.rig.receiver",
    "tests.rig.board",
    "tests.rig.browser",
    "tests.rig.standin",
    "tests.rig.working",
    "tests.rig.proxy",
    "tests.rig.trial_package",
]
