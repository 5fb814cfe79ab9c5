"""What refreshes the pages: numbers and tables come from here, sentences from the pages and from templates/."""
