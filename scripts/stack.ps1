# What the .ps1 scripts share. They run the same programs as the .sh scripts beside
# them, on Docker Compose, and need no bash: PowerShell 7, Go, and Docker with Compose.
$ErrorActionPreference = 'Stop'
$PSNativeCommandUseErrorActionPreference = $true

# Invoke-InStack runs a block at the top of the repository, with variables of the
# environment that are as before afterwards: Compose would read them the next time.
function Invoke-InStack([hashtable] $Variables, [scriptblock] $Block) {
    $before = @{}
    foreach ($name in $Variables.Keys) { $before[$name] = [Environment]::GetEnvironmentVariable($name) }
    Push-Location (Join-Path $PSScriptRoot '..')
    try {
        foreach ($name in $Variables.Keys) { [Environment]::SetEnvironmentVariable($name, $Variables[$name]) }
        & $Block
    } finally {
        Pop-Location
        foreach ($name in $Variables.Keys) { [Environment]::SetEnvironmentVariable($name, $before[$name]) }
    }
}

# Start-Stack starts everything and returns once all of it is ready.
function Start-Stack { docker compose up -d --build --wait }

# Get-Address prints the address on this machine of a container's port.
function Get-Address([string] $Service, [int] $Port) { docker compose port $Service $Port }

# Get-Secret prints a secret of the stack, such as rabbitmq/password.
function Get-Secret([string] $Name) {
    docker compose run --rm -T --no-deps --entrypoint cat secrets "/secrets/$Name"
}

# Get-OwnAddress prints an address of this machine that containers reach.
function Get-OwnAddress {
    if ($IsLinux) { # the first one of the stack's network
        $subnet = if ($env:STACK_SUBNET) { $env:STACK_SUBNET } else { '10.231.87.0/24' }
        return $subnet -replace '\.\d+/\d+$', '.1'
    }
    [Net.Dns]::GetHostAddresses([Net.Dns]::GetHostName()) |
        Where-Object AddressFamily -EQ 'InterNetwork' | Select-Object -First 1 -ExpandProperty IPAddressToString
}
