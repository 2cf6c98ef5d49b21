"""What people see, made from records only: terminal tables, figures, the report page."""
