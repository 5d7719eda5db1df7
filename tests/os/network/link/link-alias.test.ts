import { expect, test } from 'bun:test'
import { createLogger } from '../../../../src/cosi/log.ts'
import { Runtime } from '../../../../src/cosi/runtime.ts'
import { Store } from '../../../../src/cosi/store.ts'
import { parseConfig } from '../../../../src/os/config/parse.ts'
import { MachineConfig } from '../../../../src/os/config/resources/machine-config.ts'
import { applyLinkAliases, configLinkAliases } from '../../../../src/os/network/controllers/link/link-alias.ts'
import { LinkStatus } from '../../../../src/os/network/resources/link.ts'
import { linkStatus } from '../link-status.ts'

const document = (name: string, match: string) =>
  `---\napiVersion: v1alpha1\nkind: LinkAliasConfig\nname: ${name}\nselector: {match: '${match}'}\n`
const config = (...documents: string[]) => `version: v1alpha1\nmachine:\n  type: worker\ncluster: {}\n${documents.join('')}`

test('links get the alias of a matching document, and lose it with the document', async () => {
  const kernel = new Map(['eth0', 'eth1', 'eth2'].map((name) => [name, { name, alias: '' }]))
  const logged: string[] = []
  const store = new Store()
  const os = new Runtime(store, { log: createLogger(({ level, message }) => level === 'warn' && logged.push(message)) })
  const network = {
    links: () => [...kernel.values()],
    setLink: (name: string, { alias = '' }) => void kernel.set(name, { name, alias }),
    [Symbol.dispose]() {},
  }
  os.register(configLinkAliases, applyLinkAliases({ net: { openNetwork: () => network } as never }))
  os.start()
  for (const [index, name] of [...kernel.keys()].entries())
    store.put(
      LinkStatus,
      name,
      linkStatus(index + 1, { permanentAddr: `00:1a:00:00:00:0${index}`, driver: index === 0 ? 'virtio_net' : 'e1000' }),
    )
  const aliases = () => [...kernel.values()].map(({ alias }) => alias)
  store.put(
    MachineConfig,
    'v1alpha1',
    config(document('uplink', 'link.driver == "virtio_net"'), document('lan%d', 'mac(link.permanent_addr).startsWith("00:1a")')),
  )
  await os.settled()
  expect(aliases()).toEqual(['uplink', 'lan0', 'lan1'])
  store.put(MachineConfig, 'v1alpha1', config(document('both', 'link.driver == "e1000"')))
  await os.settled()
  expect(aliases()).toEqual(['', '', ''])
  expect([...new Set(logged)]).toEqual(['link alias matches several links, expected one'])
})

test('an invalid expression fails validation', () => {
  const { errors } = parseConfig(config(document('x', 'link.driver =='))).validate('metal')
  expect(errors.map(({ message }) => message)).toContain('character 15: unexpected token: the end')
})
