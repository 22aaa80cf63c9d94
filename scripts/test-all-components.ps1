#!/usr/bin/env pwsh
#Requires -Version 7.4
# Everything that runs, once: the stack with each of its processes, the main job on
# sample reports, the configuration of the queues and what they promise, and half a
# minute of load with an audit of every event. Arguments go to the load test.
. (Join-Path $PSScriptRoot 'stack.ps1')
$options = $args

$own = Get-OwnAddress
# Receivers of webhooks may be on this machine.
Invoke-InStack @{ WEBHOOK_ALLOW_HTTP = 'true'; WEBHOOK_ALLOW_NETWORKS = "$own/32" } {
    Write-Host '== the stack'
    Start-Stack
    docker compose ps
    Write-Host '== the main job'
    $variables = @{
        GATEWAY_URL   = "http://$(Get-Address gateway 8080)"
        MAILBOX_URL   = "http://$(Get-Address mailbox 3023)"
        DEMO_RECEIVER = $own
    }
    Invoke-InStack $variables { go run ./scripts/cmd/demo -digest }
}
Write-Host '== queues'
& (Join-Path $PSScriptRoot 'test-rabbitmq-features.ps1')
Write-Host '== load'
& (Join-Path $PSScriptRoot 'test-extreme-load-2.5m.ps1') -profile default @options
