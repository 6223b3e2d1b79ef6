"""Films: brought into a form that browsers play, and a picture out of them. ffmpeg does the work."""
