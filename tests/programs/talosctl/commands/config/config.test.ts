import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { newCA, newCertificate, toBase64, year } from '../../../../../src/pki/certificate.ts'
import { run } from '../../../../../src/programs/talosctl/talosctl.ts'
import { textIo } from '../../text-io.ts'

const now = new Date('2026-11-21T12:00:00Z')
const ca = newCA({ subject: { organizations: ['talos'] }, kind: 'ed25519', now })
const pair = newCertificate({ ca, subject: { organizations: ['os:admin'] }, usage: ['clientAuth'], lifetime: year, now })

let folder = ''
const file = (name = 'config') => `${folder}/${name}`
const talosctl = async (...args: string[]) => {
  const io = textIo({ env: { TALOSCONFIG: file() } })
  const code = await run(args, io)
  return { code, out: io.out, err: io.err }
}

beforeEach(() => {
  folder = mkdtempSync('/tmp/talosconfig-')
  writeFileSync(
    file(),
    `# mine\ncontext: talos-default\ncontexts:\n    talos-default:\n        endpoints: # ours\n            - 10.6.0.2\n        nodes:\n            - 10.6.0.2\n        ca: ${toBase64(ca.crt)}\n        crt: ${toBase64(pair.crt)}\n        key: ${toBase64(pair.key)}\n    other:\n        endpoints: []\n`,
  )
})
afterEach(() => rmSync(folder, { recursive: true }))

describe('talosctl config', () => {
  test('contexts lists them', async () => {
    expect((await talosctl('config', 'contexts')).out).toBe(
      'CURRENT   NAME            ENDPOINTS   NODES\n          other                       \n*         talos-default   10.6.0.2    10.6.0.2\n',
    )
  })

  test('info prints the identity and its expiry', async () => {
    expect((await talosctl('config', 'info')).out).toBe(
      [
        'Current context:     talos-default',
        'Nodes:               10.6.0.2',
        'Endpoints:           10.6.0.2',
        'Roles:               os:admin',
        'Certificate expires: 1 year from now (2027-11-21)',
        '',
      ].join('\n'),
    )
    expect((await talosctl('config', 'info', '--context', 'other')).out).toContain('Nodes:               not defined\n')
    expect(JSON.parse((await talosctl('config', 'info', '-o', 'json')).out)).toMatchObject({
      context: 'talos-default',
      roles: ['os:admin'],
      certNotAfter: '2027-11-21',
    })
  })

  test('changes keep comments and the file for its owner alone', async () => {
    expect(await talosctl('config', 'endpoint', '10.6.0.2', '10.6.0.3')).toEqual({ code: 0, out: '', err: '' })
    await talosctl('config', 'node', '10.6.0.4')
    await talosctl('config', 'context', 'other')
    const text = readFileSync(file(), 'utf8')
    expect(text).toStartWith('# mine\ncontext: other\n')
    expect(text).toContain('- 10.6.0.3\n')
    expect(statSync(file()).mode & 0o777).toBe(0o600)
    expect((await talosctl('config', 'contexts')).out).toContain('*         other')
  })

  test('add takes credentials from files and refuses a name that is taken', async () => {
    writeFileSync(file('a.crt'), ca.crt)
    writeFileSync(file('a.key'), pair.key)
    expect((await talosctl('config', 'add', 'new', '--ca', file('a.crt'), '--crt', file('a.crt'), '--key', file('a.key'))).code).toBe(0)
    expect(readFileSync(file(), 'utf8')).toContain(`key: ${toBase64(pair.key)}`)
    expect((await talosctl('config', 'add', 'new')).err).toContain('context "new" is in')
    expect((await talosctl('config', 'add', 'x', '--crt', file('a.crt'))).err).toContain('give both --crt and --key')
  })

  test('merge overwrites existing contexts on request', async () => {
    writeFileSync(file('from'), 'context: other\ncontexts:\n    other:\n        endpoints: [10.9.0.1]\n')
    expect((await talosctl('config', 'merge', file('from'), '--overwrite')).err).toBe('overwrote talosconfig context "other"\n')
    expect(JSON.parse((await talosctl('config', 'contexts', '-o', 'json')).out)).toEqual([
      { name: 'other', current: true, endpoints: ['10.9.0.1'], nodes: [] },
      { name: 'talos-default', current: false, endpoints: ['10.6.0.2'], nodes: ['10.6.0.2'] },
    ])
  })

  test('merge renames what is taken, twice too', async () => {
    writeFileSync(file('from'), 'context: other\ncontexts:\n  other:\n    endpoints: [1.1.1.1]\n')
    expect((await talosctl('config', 'merge', file('from'))).err).toBe('renamed talosconfig context "other" -> "other-1"\n')
    expect((await talosctl('config', 'merge', file('from'))).err).toBe('renamed talosconfig context "other" -> "other-2"\n')
    expect((await talosctl('config', 'contexts')).out).toContain('*         other-2         1.1.1.1')
  })

  test('remove prompts, spares the current context and understands patterns', async () => {
    expect((await talosctl('config', 'remove', 'other')).err).toContain('add --noconfirm')
    expect((await talosctl('config', 'remove', '*', '--dry-run')).err).toContain('would remove context "other"')
    expect((await talosctl('config', 'remove', '*', '-y')).err).toBe(
      'skipping the current context "talos-default": choose another one before removing it\nremoved context "other"\n',
    )
    expect(readFileSync(file(), 'utf8')).not.toContain('other:')
  })

  test('a context that is not there is refused with those that are', async () => {
    const { code, err } = await talosctl('config', 'context', 'nope')
    expect(code).toBe(1)
    expect(err).toBe(`context "nope" is not in "${file()}": there are talos-default, other\n`)
  })

  test('a file that is not there yet is made', async () => {
    writeFileSync(file('from'), 'context: c\ncontexts:\n  c:\n    endpoints: [1.1.1.1]\n')
    expect((await talosctl('config', 'merge', file('from'), '--talosconfig', file('deep/er/config'))).code).toBe(0)
    expect(readFileSync(file('deep/er/config'), 'utf8')).toContain('context: c')
  })
})
