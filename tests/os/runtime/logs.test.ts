import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Store } from '../../../src/cosi/store.ts'
import * as realFiles from '../../../src/linux/fs/files.ts'
import { logMethods } from '../../../src/os/runtime/api/logs.ts'
import { Supervisor } from '../../../src/supervise/supervisor.ts'

const root = mkdtempSync(join(tmpdir(), 'ichor-logs-'))
afterAll(() => rmSync(root, { recursive: true }))
const pods = join(root, 'var/log/pods')
const folder = join(pods, 'default_web_0123/nginx')
beforeEach(() => {
  rmSync(join(root, 'var'), { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
})

/** The files below `root`. */
const files = {
  ...realFiles,
  list: (path: string) => realFiles.list(join(root, path)),
  openHandle: (path: string, { below }: { below?: string } = {}) =>
    realFiles.openHandle(join(root, path), below === undefined ? {} : { below: join(root, below) }),
}
const container = {
  namespace: 'k8s.io',
  internalId: 'ab12',
  image: 'nginx',
  pid: 0,
  status: 'CONTAINER_RUNNING',
  podId: 'default/web',
  uid: '0123',
  cgroup: '',
  networkNamespace: '',
}
const listed = [
  { ...container, id: 'default/web', name: 'web', created: 0 },
  { ...container, id: 'default/web:nginx:ab12', name: 'nginx', created: 1 },
]

/** What `logs -k` reads of the pod's container. */
async function read(id = 'default/web:nginx'): Promise<string> {
  const supervisor = new Supervisor({ store: new Store() })
  const logs = logMethods({ supervisor, logFiles: {} as never, kernel: { files } as never }, async () => listed).find(({ path }) =>
    path.endsWith('/Logs'),
  )!
  const request = { namespace: 'k8s.io', driver: 1, id, follow: false, tailLines: -1 }
  const replies = logs.handle(request as never, { signal: new AbortController().signal } as never) as AsyncIterable<{ bytes: Uint8Array }>
  return Buffer.concat((await Array.fromAsync(replies)).map(({ bytes }) => bytes)).toString()
}

/** A file that pods must not read. */
function secret(): string {
  const path = join(root, 'var/lib/secret/0.log')
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, 'secret')
  return path
}

describe('the log of a pod’s container', () => {
  test('is read from its folder below /var/log/pods', async () => {
    writeFileSync(join(folder, '0.log'), 'hello')
    expect(await read()).toBe('hello')
    await expect(read('default/other:nginx')).rejects.toThrow('container "default/other:nginx" was not found')
  })

  test('is not read through a link, wherever it leads', async () => {
    symlinkSync(secret(), join(folder, '0.log'))
    await expect(read()).rejects.toThrow('ELOOP')
    rmSync(join(folder, '0.log'))
    writeFileSync(join(pods, 'other.log'), 'of another pod')
    symlinkSync(join(pods, 'other.log'), join(folder, '0.log'))
    await expect(read()).rejects.toThrow('ELOOP')
  })

  test('is not read from a folder that is a link out of /var/log/pods', async () => {
    rmSync(folder, { recursive: true })
    symlinkSync(dirname(secret()), folder)
    await expect(read()).rejects.toThrow('ELOOP')
  })
})
