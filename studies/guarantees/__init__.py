"""The promises of certificates, tried by simulation on sources whose truth is known."""
