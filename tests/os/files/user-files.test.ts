import { describe, expect, test } from 'bun:test'
import type { UserFile } from '../../../src/os/files/documents/machine-files.ts'
import { UserFileError, writeUserFiles } from '../../../src/os/files/user-files.ts'

/** A node with files in memory and recorded kernel calls. */
function node(before: Record<string, string> = {}) {
  const content = new Map(Object.entries(before))
  const recorded: string[] = []
  const mounted = new Set<string>()
  const kernel = {
    files: {
      exists: (path: string) => content.has(path),
      mkdirAll: () => {},
      readTextIfThere: (path: string) => content.get(path),
      async writeAtomic(path: string, text: string | Uint8Array, { mode = 0 } = {}) {
        content.set(path, String(text))
        recorded.push(`write ${path} ${mode.toString(8)}`)
      },
      writeInto: (path: string, text: string) => void content.set(path, text),
    },
    mount: {
      bind(source: string, target: string) {
        mounted.add(target)
        content.set(target, content.get(source)!)
        recorded.push(`bind ${source} ${target}`)
      },
      mountAt: (path: string) => (mounted.has(path) ? ({} as never) : undefined),
    },
  }
  return { content, recorded, write: (...files: UserFile[]) => writeUserFiles(kernel, files) }
}

describe('a file of the configuration', () => {
  test('is created below /var with its mode', async () => {
    const { content, recorded, write } = node()
    await write({ path: '/var/etc/a.conf', content: 'a', permissions: '0o600', op: 'create' })
    expect(content.get('/var/etc/a.conf')).toBe('a')
    expect(recorded).toEqual(['write /var/etc/a.conf 600'])
  })

  test('of the image is replaced by a bind mount', async () => {
    const { content, recorded, write } = node({ '/etc/profile': 'old\n' })
    await write({ path: '/etc/profile', content: 'new\n', op: 'overwrite' })
    expect(content.get('/etc/profile')).toBe('new\n')
    expect(recorded).toEqual(['write /system/files/etc/profile 644', 'bind /system/files/etc/profile /etc/profile'])
    await write({ path: '/etc/profile', content: 'more\n', op: 'append' })
    expect(content.get('/etc/profile')).toBe('new\nmore\n')
  })

  test('that was appended to at an earlier boot is left as it is', async () => {
    const { content, write } = node({ '/var/log/x': 'a\n' })
    for (let start = 0; start < 2; start++) await write({ path: '/var/log/x', content: 'b\n', op: 'append' })
    expect(content.get('/var/log/x')).toBe('a\nb\n')
  })

  test('that cannot be written is reported, and the others are written anyway', async () => {
    const { content, write } = node()
    const wrong = write(
      { path: '/etc/new', content: '', op: 'create' },
      { path: '/etc/gone', content: '', op: 'append' },
      { path: '/var/../etc/x', content: '', op: 'create' },
      { path: '/var/good', content: 'good', op: 'create' },
      { path: '/etc/cri/conf.d/20-customization.part', content: 'not ours', op: 'create' },
    )
    await expect(wrong).rejects.toThrow(UserFileError)
    await wrong.catch(({ message }) =>
      expect(message).toBe(
        'file "/etc/new": "/etc/new" is read-only: files can be created only below /var/, or as /etc/cri/conf.d/*.part; file "/etc/gone": is not there to append; file "/var/../etc/x": "/var/../etc/x" must be an absolute path of a file, without "." and ".."',
      ),
    )
    expect([...content]).toEqual([['/var/good', 'good']])
  })
})
