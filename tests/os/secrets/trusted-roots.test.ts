import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { certificateBundle, EtcFileSpec } from '../../../src/os/files/resources/etc-file.ts'
import { writeTrustedRoots } from '../../../src/os/secrets/controllers/trusted-roots.ts'

const pem = (name: string) => `-----BEGIN CERTIFICATE-----\n${name}\n-----END CERTIFICATE-----\n`
const document = (name: string) =>
  `apiVersion: v1alpha1\nkind: TrustedRootsConfig\nname: ${name}\ncertificates: |\n  ${pem(name).trim().replaceAll('\n', '\n  ')}\n`

test('the file has the authorities of the image, then those of each document under its name', async () => {
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  let reads = 0
  const readTextIfThere = (path: string) => {
    reads++
    return path === '/etc/ssl/certs/ca-certificates.crt' ? pem('image') : undefined
  }
  runtime.register(writeTrustedRoots({ files: { readTextIfThere } }))
  runtime.start()
  await runtime.settled()
  const contents = () => store.get(EtcFileSpec, certificateBundle)?.spec.contents
  expect(contents()).toBe(pem('image'))
  store.put(MachineConfig, 'v1alpha1', `${document('company')}---\n${document('b')}`)
  await runtime.settled()
  expect(contents()).toBe(`${pem('image')}\n\ncompany:\n========\n${pem('company')}\n\nb:\n==\n${pem('b')}`)
  store.destroy(MachineConfig, 'v1alpha1')
  await runtime.settled()
  expect(contents()).toBe(pem('image'))
  // The file is mounted over that of the image, which is read before.
  expect(reads).toBe(1)
  runtime.stop()
})
