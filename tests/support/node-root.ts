/** Looks through a node's root and processes for secrets that somebody else could read. */

import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const writable = ['system', 'run', 'etc', 'var', 'tmp', 'opt', 'usr/libexec/kubernetes']
// Secrets are small; images' layers and databases are closed to others as a whole.
const largest = 4 * 1024 * 1024

/** The texts in a secrets bundle that must not get about: tokens, secrets, and a line of every key. */
export function secretTexts(bundle: string): string[] {
  const found: string[] = []
  const walk = (value: unknown, key: string) => {
    if (value && typeof value === 'object') for (const [name, inner] of Object.entries(value)) walk(inner, name)
    else if (typeof value === 'string' && key !== 'crt' && key !== 'id') found.push(value, keyLine(value) ?? value)
  }
  walk(Bun.YAML.parse(bundle), '')
  return [...new Set(found)]
}

/** Files below a root that hold a secret and can be read by others than their owner and group. */
export function openSecrets(root: string, secrets: readonly string[]): { looked: number; open: string[] } {
  const open: string[] = []
  let looked = 0
  const walk = (folder: string) => {
    for (const entry of entriesOf(join(root, folder))) {
      const path = join(folder, entry)
      const { mode, size } = lstatSync(join(root, path), { throwIfNoEntry: false }) ?? { mode: 0, size: 0 }
      const kind = mode & 0o170000
      // Nobody else gets into a folder without its last x.
      if (kind === 0o040000 && mode & 0o001) walk(path)
      if (kind !== 0o100000 || size > largest) continue
      looked++
      if (mode & 0o006 && holds(join(root, path), secrets)) open.push(`${(mode & 0o7777).toString(8)} /${path}`)
    }
  }
  for (const folder of writable) walk(folder)
  return { looked, open }
}

/** Command lines that hold a secret. */
export function argumentsWithSecrets(pids: readonly number[], secrets: readonly string[]): string[] {
  return pids.flatMap((pid) => {
    const line = textOf(`/proc/${pid}/cmdline`).replaceAll('\0', ' ')
    return secrets.some((secret) => line.includes(secret)) ? [line] : []
  })
}

function holds(path: string, secrets: readonly string[]): boolean {
  const text = textOf(path)
  return text.includes('PRIVATE KEY-----') || secrets.some((secret) => text.includes(secret))
}

function keyLine(value: string): string | undefined {
  const pem = Buffer.from(value, 'base64').toString('latin1')
  return pem.startsWith('-----BEGIN ') ? pem.split('\n')[1] : undefined
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}

function entriesOf(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
