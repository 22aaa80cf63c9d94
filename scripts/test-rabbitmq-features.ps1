#!/usr/bin/env pwsh
#Requires -Version 7.4
# Walks a running stack through confirms, idempotency, delayed retry, dead letters
# and replay, and prints what it sees. Arguments go to scripts/cmd/features.
. (Join-Path $PSScriptRoot 'stack.ps1')
$options = $args

Invoke-InStack @{} {
    $variables = @{
        GATEWAY_URL   = "http://$(Get-Address gateway 8080)"
        RECIPIENT_KEY = Get-Secret 'notification/recipient_key'
        RABBITMQ_URL  = (Get-Secret 'rabbitmq/rabbitmq_url') -replace '@rabbitmq:5672[^/]*', "@$(Get-Address rabbitmq 5672)"
    }
    Invoke-InStack $variables { go run ./scripts/cmd/features @options }
}
