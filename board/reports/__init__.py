"""The weekly report: what happened in a week of the calendar, told alike by page, API, file and mail."""
