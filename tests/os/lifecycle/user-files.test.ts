import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Store } from '../../../src/cosi/store.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { putUserFiles } from '../../../src/os/lifecycle/start/user-files.ts'
import { Diagnostic } from '../../../src/os/runtime/resources/diagnostic.ts'
import { config } from '../config/machine.ts'

/** Runs the task with these files on a machine where one path is a directory. Returns the written files and the diagnostic. */
async function put(...paths: string[]) {
  const files = paths.map((path) => ({ path, op: 'create', permissions: '0o644', content: 'x' }))
  const store = new Store()
  store.put(MachineConfig, 'v1alpha1', config('worker', `machine: {files: ${JSON.stringify(files)}}`))
  const written: string[] = []
  const kernel = {
    files: {
      mkdirAll() {},
      readTextIfThere: () => undefined,
      async writeAtomic(path: string) {
        if (path === '/var/folder') throw new Error('write "/var/folder": EISDIR')
        written.push(path)
      },
    },
    mount: {},
  }
  await putUserFiles({ kernel, store } as never).run({ log: silent, signal: new AbortController().signal } as never)
  return { written, recorded: store.get(Diagnostic, 'machine-files')?.spec }
}

test('an unwritable file is reported and blocks neither the others nor the boot', async () => {
  expect(await put('/var/a', '/var/folder', '/var/b')).toEqual({
    written: ['/var/a', '/var/b'],
    recorded: {
      message: 'not all files of the configuration could be written at this start: correct machine.files',
      details: ['file "/var/folder": write "/var/folder": EISDIR'],
    },
  })
})

test('nothing is reported if all files are written', async () => {
  expect(await put('/var/a')).toEqual({ written: ['/var/a'], recorded: undefined })
})
