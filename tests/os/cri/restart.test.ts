import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { ConfigRead } from '../../../src/os/cri/config-read.ts'
import { restartOnConfig } from '../../../src/os/cri/controllers/restart.ts'
import { certificateBundle, EtcFileStatus } from '../../../src/os/files/resources/etc-file.ts'
import { Environment } from '../../../src/os/runtime/resources/environment.ts'
import { Service } from '../../../src/os/runtime/resources/service.ts'

test('the daemon restarts when its configuration, the trusted authorities or its variables change, and only then', async () => {
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
  const write = (specVersion: string, id = 'cri/conf.d/cri.toml') => store.put(EtcFileStatus, id, { specVersion })
  runtime.start()
  write('1')
  write('1', certificateBundle)
  read.note(store)
  store.put(Service, 'cri', { running: true, healthy: true, unknown: false })
  await runtime.settled()
  expect(restarted).toEqual([])
  write('2')
  await runtime.settled()
  expect(restarted).toEqual(['cri'])
  write('2', certificateBundle)
  await runtime.settled()
  expect(restarted).toEqual(['cri', 'cri'])
  store.put(Environment, 'machined', { variables: ['HTTPS_PROXY=http://10.0.0.9:3128'] })
  await runtime.settled()
  expect(restarted).toEqual(['cri', 'cri', 'cri'])
  write('1', 'hosts')
  await runtime.settled()
  expect(restarted).toHaveLength(3)
})
