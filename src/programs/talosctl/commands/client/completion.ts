import { Command } from 'commander'
import type { Cluster } from '../../cluster.ts'
import type { Io } from '../../io.ts'

/** talosctl completion */
export const completion = (io: Io, _: Cluster) => {
  const command = new Command().description('Write the completion script of a shell to standard output.')
  for (const [shell, { script, how }] of Object.entries(shells)) {
    command
      .command(shell)
      .description(`Completion for ${shell}. Load it with: ${how}`)
      .action(() => io.stdout.write(script))
  }
  return command
}

const bash = `_talosctl() {
  local IFS=$'\\n'
  local words=("\${COMP_WORDS[@]:1:COMP_CWORD}")
  local found=($(talosctl __complete "\${words[@]}" 2>/dev/null))
  COMPREPLY=("\${found[@]%%$'\\t'*}")
  case "\${COMPREPLY[0]-}" in */|*=) compopt -o nospace 2>/dev/null ;; esac
}
complete -o default -F _talosctl talosctl
`

const zsh = `#compdef talosctl
_talosctl() {
  local -a found
  local line
  for line in "\${(@f)$(talosctl __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n "$line" ]] || continue
    found+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${\${line#*$'\\t'}:-}")
  done
  (( \${#found} )) && _describe talosctl found || _files
}
compdef _talosctl talosctl
`

const fish = `function __talosctl_complete
  set -l words (commandline -opc) (commandline -ct)
  talosctl __complete $words[2..-1] 2>/dev/null
end
complete -c talosctl -f -a '(__talosctl_complete)'
`

const powershell = `Register-ArgumentCompleter -Native -CommandName talosctl -ScriptBlock {
  param($word, $tree, $cursor)
  $words = @($tree.CommandElements | Select-Object -Skip 1 | Where-Object { $_.Extent.EndOffset -le $cursor } | ForEach-Object { $_.ToString() })
  if ($word -eq '') { $words += '""' }
  talosctl __complete @words 2>$null | ForEach-Object {
    $parts = $_ -split "\`t", 2
    $about = if ($parts.Length -gt 1 -and $parts[1]) { $parts[1] } else { $parts[0] }
    [System.Management.Automation.CompletionResult]::new($parts[0], $parts[0], 'ParameterValue', $about)
  }
}
`

const shells = {
  bash: { script: bash, how: 'source <(talosctl completion bash)' },
  zsh: { script: zsh, how: 'source <(talosctl completion zsh)' },
  fish: { script: fish, how: 'talosctl completion fish | source' },
  powershell: { script: powershell, how: 'talosctl completion powershell | Out-String | Invoke-Expression' },
} as const
