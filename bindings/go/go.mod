module onetrip/callsites

go 1.19
