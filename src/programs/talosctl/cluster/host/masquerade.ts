/** Lets nodes reach networks beyond the host, through nftables where available: the host's own, or the one in the root file system. */

import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { familyOf } from '../../../../wire/prefix.ts'

const commandTimeout = 10_000

const families = { inet4: { family: 'ip', multicast: '224.0.0.0/4' }, inet6: { family: 'ip6', multicast: 'ff00::/8' } } as const

/** Hides a network's addresses behind the host's; false when there is no nftables, so that nodes stay among themselves. */
export async function addMasquerade(table: string, cidr: string, rootfs: string): Promise<boolean> {
  const { family, multicast } = families[familyOf(cidr)]
  const rules = [
    `table ${family} ${table}`,
    `delete table ${family} ${table}`,
    `table ${family} ${table} {`,
    '  chain postrouting {',
    '    type nat hook postrouting priority srcnat; policy accept;',
    `    ${family} saddr ${cidr} ${family} daddr != ${cidr} ${family} daddr != ${multicast} masquerade`,
    '  }',
    '}',
  ].join('\n')
  return (await nft(rules, rootfs)) === 0
}

/** Takes the rules of a cluster away; absent is fine. */
export async function removeMasquerade(table: string, rootfs?: string): Promise<void> {
  for (const { family } of Object.values(families)) await nft(`table ${family} ${table}\ndelete table ${family} ${table}`, rootfs)
}

/** The ways of calling nft on this host, best first. */
function nftCommands(rootfs: string | undefined): string[][] {
  const own = ['/usr/sbin/nft', '/sbin/nft'].filter((path) => existsSync(path)).map((path) => [path])
  if (!rootfs) return own
  const binary = ['usr/sbin/nft', 'usr/bin/nft'].map((path) => `${rootfs}/${path}`).find((path) => existsSync(path))
  const loader = [
    'lib64/ld-linux-x86-64.so.2',
    'usr/lib64/ld-linux-x86-64.so.2',
    'usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2',
    'usr/lib/aarch64-linux-gnu/ld-linux-aarch64.so.1',
  ]
    .map((path) => `${rootfs}/${path}`)
    .find((path) => existsSync(path))
  if (!binary || !loader) return own
  const libraries = ['x86_64-linux-gnu', 'aarch64-linux-gnu', '']
    .map((arch) => `${rootfs}/usr/lib/${arch}`)
    .filter((path) => existsSync(path))
  return [...own, [loader, '--library-path', libraries.join(':'), binary]]
}

async function nft(rules: string, rootfs: string | undefined): Promise<number> {
  for (const [command = '', ...args] of nftCommands(rootfs)) {
    const code = await run(command, [...args, '-f', '-'], rules)
    if (code !== undefined) return code
  }
  return 127
}

function run(command: string, args: string[], input: string): Promise<number | undefined> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ['pipe', 'ignore', 'ignore'], timeout: commandTimeout })
    child.once('error', () => resolve(undefined))
    child.once('exit', (code) => resolve(code ?? 1))
    child.stdin.on('error', () => {})
    child.stdin.end(`${input}\n`)
  })
}
