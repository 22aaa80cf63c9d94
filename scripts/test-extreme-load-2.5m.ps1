#!/usr/bin/env pwsh
#Requires -Version 7.4
# Two and a half million events within half an hour, on a thousand screens: the
# whole stack under the load that it is meant for, with an audit of every event.
# Arguments go to the load test, later ones win:
#   scripts/test-extreme-load-2.5m.ps1 -ReportsPerUser 10    # 72 seconds of it
#   scripts/test-extreme-load-2.5m.ps1 -Insane               # ten times everything; requests end after 45 minutes
. (Join-Path $PSScriptRoot 'stack.ps1')
$options = $args

# A load comes from one address, and from people who act faster than people do.
# Its incidents lie in other cities.
$variables = @{ GATEWAY_LIMITS = 'off'; REPORTS_PER_USER = 'off'; VOTES_PER_USER = 'off'; MAP_BOUNDS = '-180,-90,180,90' }
Invoke-InStack $variables {
    Start-Stack
    $state = Join-Path $PWD '.stack'
    $out = Join-Path $state "load/$(Get-Date -Format yyyyMMdd-HHmmss)"
    $gateway = "http://$(Get-Address gateway 8080)"
    Invoke-InStack @{ GOWORK = 'off' } {
        go -C scripts/cmd/loadtest run . -stack $state -out $out -gateway $gateway -profile 2.5m @options
    }
    Write-Host "load: the report is in $out"
}
