"""The mail server of these tests. Only here: whoever tests something else need not have it installed."""

from tests.rig.mail import certificate, mail_server, open_mail_server

__all__ = ["certificate", "mail_server", "open_mail_server"]
