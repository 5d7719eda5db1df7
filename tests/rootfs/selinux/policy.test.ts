/** The SELinux policy: what it promises, judged by its compiler and by setools where they are installed. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const texts = join(import.meta.dir, '../../../rootfs/selinux')
const sources = readdirSync(texts).map((name) => join(texts, name))
const folder = mkdtempSync(join(tmpdir(), 'ichor-selinux-'))
const policy = join(folder, 'policy')
afterAll(() => rmSync(folder, { recursive: true }))

function compile(output: string, ...more: string[]): { ok: boolean; errors: string } {
  const flags = ['--policyvers', '33', '--output', output, '--filecontext', '/dev/null']
  const { success, stderr } = Bun.spawnSync(['secilc', ...flags, ...sources, ...more])
  return { ok: success, errors: stderr.toString() }
}

describe.skipIf(!Bun.which('secilc'))('by secilc (Debian package secilc)', () => {
  test('it compiles, and is small', () => {
    expect(compile(policy)).toEqual({ ok: true, errors: '' })
    expect(statSync(policy).size).toBeLessThan(200_000)
  })

  test.each([
    ['a pod that traces init', '(allow pod_t init_t (process (ptrace)))'],
    ['a pod that becomes init', '(allow pod_t init_t (process (transition)))'],
    ['a pod on the socket of the machine', '(allow pod_t machine_socket_t (sock_file (write)))'],
    ['a pod that reads STATE', '(allow pod_t system_state_t (file (read)))'],
    ['a pod that gives a mounted file system another label', '(allow pod_t ephemeral_t (filesystem (relabelfrom)))'],
    ['a pod that reads the environment of init', '(allow pod_t init_t (file (read)))'],
    ['a pod that reads keys of the machine', '(allow pod_t system_t (file (read)))'],
    ['a pod that names a program for the kernel', '(allow pod_t usermodehelper_t (file (write)))'],
    ['the daemon of pods that loads a policy', '(allow pod_containerd_t security_t (security (load_policy)))'],
    ['apid that reads STATE', '(allow apid_t system_state_t (file (read)))'],
    ['apid that reads keys', '(allow apid_t system_t (file (read)))'],
    ['trustd on the socket of apid', '(allow trustd_t apid_runtime_socket_t (sock_file (write)))'],
  ])('%s is refused', (_, rule) => {
    const file = join(folder, 'more.cil')
    writeFileSync(file, `${rule}\n`)
    const { ok, errors } = compile(join(folder, 'broken'), file)
    expect(ok).toBe(false)
    expect(errors).toContain('neverallow check failed')
  })
})

describe.skipIf(!Bun.which('sesearch') || !Bun.which('secilc'))('by sesearch (Debian package setools)', () => {
  beforeAll(() => expect(compile(policy).ok).toBe(true))

  /** Domains, or attributes of domains, that are granted one of the permissions. */
  const granted = (type: string, ofClass: string, ...permissions: string[]) => {
    const query = ['--allow', '--target', type, '--class', ofClass, ...permissions.flatMap((each) => ['--perms', each]), policy]
    const { stdout } = Bun.spawnSync(['sesearch', ...query])
    return [...new Set([...stdout.toString().matchAll(/^allow (\w+) /gm)].map(([, source]) => source))].sort()
  }

  test.each([
    ['traces init', ['init_t', 'process', 'ptrace,transition,dyntransition'], ['init_t', 'kernel_t']],
    ['loads a policy or stops enforcing it', ['security_t', 'security', 'load_policy,setenforce'], ['init_t', 'kernel_t']],
    ['reads STATE', ['system_state_t', 'file', 'read'], ['init_t', 'kernel_t']],
    ['reads keys of the machine', ['system_t', 'file', 'read'], ['daemon', 'init_t', 'kernel_t']],
    [
      'reaches the socket of the machine',
      ['machine_socket_t', 'sock_file', 'write'],
      ['apid_t', 'daemon', 'dashboard_t', 'init_t', 'kernel_t'],
    ],
  ] as const)(
    'nobody else %s',
    (_, [type, ofClass, permissions], by) => expect(granted(type, ofClass, permissions)).toEqual([...by]),
    60_000,
  )
})
