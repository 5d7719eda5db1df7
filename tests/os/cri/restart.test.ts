import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { ConfigRead } from '../../../src/os/cri/config-read.ts'
import { restartOnConfig } from '../../../src/os/cri/controllers/restart.ts'
import { EtcFileStatus } from '../../../src/os/files/resources/etc-file.ts'
import { Service } from '../../../src/os/runtime/resources/service.ts'

test('the daemon restarts when its configuration changes, and only then', async () => {
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  const read = new ConfigRead()
  const restarted: string[] = []
  const supervisor = {
    async restart(id: string) {
      restarted.push(id)
      read.note(store)
    },
  }
  runtime.register(restartOnConfig({ supervisor: supervisor as never, store }, read))
  const write = (specVersion: string) => store.put(EtcFileStatus, 'cri/conf.d/cri.toml', { specVersion })
  runtime.start()
  write('1')
  read.note(store)
  store.put(Service, 'cri', { running: true, healthy: true, unknown: false })
  await runtime.settled()
  expect(restarted).toEqual([])
  write('2')
  await runtime.settled()
  expect(restarted).toEqual(['cri'])
})
