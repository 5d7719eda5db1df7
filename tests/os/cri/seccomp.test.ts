import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { writeSeccompProfiles } from '../../../src/os/cri/controllers/seccomp.ts'
import { SeccompProfile } from '../../../src/os/cri/resources/seccomp-profile.ts'

const folder = '/var/lib/kubelet/seccomp/profiles'

test('profiles are files by their names; each is written when it changes, and deleted with its setting', async () => {
  const contents = new Map([[`${folder}/old.json`, '{}']])
  const written: string[] = []
  const files = {
    mkdirAll() {},
    list: () => [...contents.keys()].map((path) => path.slice(folder.length + 1)),
    readTextIfThere: (path: string) => contents.get(path),
    async writeAtomic(path: string, text: string, { mode }: { mode: number }) {
      written.push(`${path} ${mode.toString(8)}`)
      contents.set(path, text)
    },
    remove: async (path: string) => void contents.delete(path),
  }
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  runtime.register(writeSeccompProfiles({ mode: 'container', files } as never))
  store.put(SeccompProfile, 'a.json', { name: 'a.json', value: { defaultAction: 'SCMP_ACT_LOG' } })
  store.put(SeccompProfile, 'b.json', { name: 'b.json', value: {} })
  runtime.start()
  await runtime.settled()
  expect(Object.fromEntries(contents)).toEqual({ [`${folder}/a.json`]: '{"defaultAction":"SCMP_ACT_LOG"}', [`${folder}/b.json`]: '{}' })
  store.put(SeccompProfile, 'b.json', { name: 'b.json', value: { defaultAction: 'SCMP_ACT_ALLOW' } })
  store.destroy(SeccompProfile, 'a.json')
  await runtime.settled()
  expect(Object.fromEntries(contents)).toEqual({ [`${folder}/b.json`]: '{"defaultAction":"SCMP_ACT_ALLOW"}' })
  expect(written).toEqual([`${folder}/a.json 644`, `${folder}/b.json 644`, `${folder}/b.json 644`])
  runtime.stop()
})
