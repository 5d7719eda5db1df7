import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { applyEtcFiles } from '../../../src/os/files/controllers/etc-file.ts'
import { EtcFileSpec } from '../../../src/os/files/resources/etc-file.ts'

test('a file is bound over what a container engine mounted there, once, and rewritten in place', async () => {
  const calls: string[] = []
  const files = {
    mkdirAll: () => {},
    writeAtomic: async (path: string) => void calls.push(`write ${path}`),
    writeInto: (path: string) => void calls.push(`rewrite ${path}`),
    remove: async (path: string) => void calls.push(`remove ${path}`),
  }
  const mount = {
    // As in a container of Docker: its own file is mounted before ours.
    mountAt: () => ({ target: '/etc/hostname' }),
    bind: (source: string, target: string) => void calls.push(`bind ${source} ${target}`),
    umount: (target: string) => void calls.push(`umount ${target}`),
  }
  const store = new Store()
  const os = new Runtime(store, { log: silent })
  os.register(applyEtcFiles({ files, mount } as never))
  os.start()
  for (const contents of ['one\n', 'two\n']) {
    store.put(EtcFileSpec, 'hostname', { contents, mode: 0o644, selinux_label: '' })
    await os.settled()
  }
  store.teardown(EtcFileSpec, 'hostname')
  await os.settled()
  expect(calls).toEqual([
    'write /system/etc/hostname',
    'bind /system/etc/hostname /etc/hostname',
    'rewrite /system/etc/hostname',
    'umount /etc/hostname',
    'remove /system/etc/hostname',
  ])
})
