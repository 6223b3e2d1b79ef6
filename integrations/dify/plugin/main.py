"""Where Dify's plugin daemon starts the plugin."""

from dify_plugin import DifyPluginEnv, Plugin

# Seconds for one call; the board answers a waiting call after 50 at the latest.
plugin = Plugin(DifyPluginEnv(MAX_REQUEST_TIMEOUT=120))

if __name__ == "__main__":
    plugin.run()
