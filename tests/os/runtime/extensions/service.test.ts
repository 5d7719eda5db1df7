import { describe, expect, test } from 'bun:test'
import { silent } from '../../../../src/cosi/log.ts'
import { Runtime } from '../../../../src/cosi/runtime.ts'
import { Store } from '../../../../src/cosi/store.ts'
import { formatIssue } from '../../../../src/document/config-error.ts'
import { ConfigContainer } from '../../../../src/os/config/container.ts'
import { MachineConfig } from '../../../../src/os/config/resources/machine-config.ts'
import {
  applyExtensionServices,
  configExtensionServices,
  observeExtensionServices,
} from '../../../../src/os/runtime/controllers/extension-service.ts'
import { configuredFile, configuredFolder } from '../../../../src/os/runtime/extensions/configured-files.ts'
import { extensionService } from '../../../../src/os/runtime/extensions/service.ts'
import { parseExtensionService } from '../../../../src/os/runtime/extensions/service-spec.ts'
import { ServiceStarts } from '../../../../src/os/runtime/extensions/starts.ts'
import { Diagnostic } from '../../../../src/os/runtime/resources/diagnostic.ts'
import { ExtensionServiceConfig, ExtensionServiceConfigStatus } from '../../../../src/os/runtime/resources/extension-service-config.ts'
import { unstartedMachine } from '../../unstarted-machine.ts'

const specOf = (more: string) => parseExtensionService(`name: a\ncontainer: {entrypoint: /a}\nrestart: never\n${more}`)

describe('a service', () => {
  const machine = unstartedMachine('metal')

  test('has an id, a group, a policy and the services it waits for', () => {
    const definition = extensionService(machine, specOf('depends: [{service: cri}]'), new ServiceStarts())
    expect(definition).toMatchObject({
      id: 'ext-a',
      dependsOn: ['containerd', 'cri'],
      restart: 'never',
      oom: -600,
      cgroup: '/system/extensions/a',
      operator: ['start', 'stop', 'restart'],
    })
  })

  test('waits for the network, the clock and its configuration, as it requires', () => {
    const store = new Store()
    const waits = (depends: string) => extensionService(machine, specOf(depends), new ServiceStarts()).wait?.(store)
    expect(waits('')).toEqual([])
    expect(waits('depends: [{time: true}, {network: [addresses]}, {configuration: true}]')).toEqual([
      'time sync',
      'network',
      'extension service config "a"',
    ])
    store.put(ExtensionServiceConfigStatus, 'a', { specVersion: '1' })
    expect(waits('depends: [{configuration: true}]')).toEqual([])
  })
})

/** Files in memory below the folder of configured files. */
function memoryFiles() {
  const held = new Map<string, string>()
  const names = (folder: string) => [
    ...new Set(
      [...held.keys()].filter((path) => path.startsWith(`${folder}/`)).map((path) => path.slice(folder.length + 1).split('/')[0] ?? ''),
    ),
  ]
  return {
    held,
    files: {
      exists: (path: string) => names(path).length > 0,
      list: names,
      mkdirAll() {},
      async remove(path: string) {
        for (const each of held.keys()) if (each === path || each.startsWith(`${path}/`)) held.delete(each)
      },
      async writeAtomic(path: string, data: string | Uint8Array) {
        held.set(path, data.toString())
      },
    },
  }
}

describe('configured files', () => {
  async function node() {
    const { held, files } = memoryFiles()
    const restarted: string[] = []
    const store = new Store()
    const starts = new ServiceStarts()
    const runtime = new Runtime(store, { log: silent })
    let state = 'Running'
    const supervisor = {
      get: (id: string) => (id === 'ext-a' ? ({ id, state } as never) : undefined),
      async restart(id: string) {
        restarted.push(id)
      },
    }
    runtime.register(applyExtensionServices({ kernel: { files }, supervisor }, starts))
    runtime.start()
    const configure = async (spec?: { files?: { content: string; mountPath: string }[]; environment?: string[] }) => {
      if (spec) store.put(ExtensionServiceConfig, 'a', spec)
      else store.destroy(ExtensionServiceConfig, 'a')
      await runtime.settled()
    }
    return { held, restarted, store, starts, configure, stop: () => (state = 'Finished') }
  }

  test('are on disk under names that do not collide, and gone with their document', async () => {
    const { held, configure } = await node()
    await configure({
      files: [
        { content: '1', mountPath: '/a/b' },
        { content: '2', mountPath: '/a-b' },
      ],
    })
    expect([...held.values()].sort()).toEqual(['1', '2'])
    expect(held.get(configuredFile('a', '/a/b'))).toBe('1')
    await configure({ files: [{ content: '3', mountPath: '/a-b' }] })
    expect([...held]).toEqual([[configuredFile('a', '/a-b'), '3']])
    await configure()
    expect(held.size).toBe(0)
  })

  test('never lead out of their folder', () => {
    expect(configuredFile('a', '/../../etc/passwd')).toBe(`${configuredFolder}/a/%2F..%2F..%2Fetc%2Fpasswd`)
    expect(configuredFile('a', '/..')).toBe(`${configuredFolder}/a/%2F..`)
  })

  test('restart a service that runs with others, once', async () => {
    const { configure, starts, store, restarted } = await node()
    await configure({ environment: ['A=1'] })
    expect(restarted).toEqual([])
    starts.begin('a', store.get(ExtensionServiceConfigStatus, 'a')?.spec.specVersion ?? '')
    await configure({ environment: ['A=1'] })
    expect(restarted).toEqual([])
    await configure({ environment: ['A=2'] })
    expect(restarted).toEqual(['ext-a'])
    await configure()
    expect(restarted).toEqual(['ext-a', 'ext-a'])
  })

  test('do not start a service that an operator has stopped', async () => {
    const { configure, starts, restarted, stop } = await node()
    starts.begin('a', '')
    stop()
    await configure({ environment: ['A=1'] })
    expect(restarted).toEqual([])
  })
})

describe('a configuration of a service that the image does not have', () => {
  const node = async (...present: string[]) => {
    const store = new Store()
    const runtime = new Runtime(store, { log: silent })
    runtime.register(configExtensionServices)
    runtime.register(observeExtensionServices(present))
    runtime.start()
    return async (...names: string[]) => {
      const documents = names.map((name) => `apiVersion: v1alpha1\nkind: ExtensionServiceConfig\nname: ${name}\nenvironment: [A=1]\n`)
      store.put(MachineConfig, 'v1alpha1', ['version: v1alpha1\n', ...documents].join('---\n'))
      await runtime.settled()
      return store.list(Diagnostic).map(({ metadata, spec: { message, details } }) => [metadata.id, message, ...details])
    }
  }
  const unknown = (name: string) => `ExtensionServiceConfig "${name}" has no effect, as this image has no extension service of that name`

  test('is a diagnostic until its document is removed', async () => {
    const configure = await node()
    expect(await configure('agent')).toEqual([
      ['extension-service-agent', `${unknown('agent')}: remove it, or upgrade to an image with the extension that brings this service`],
    ])
    expect(await configure()).toEqual([])
  })

  test('is a diagnostic that names a similar service until the document has its name', async () => {
    const configure = await node('agent', 'greeting')
    expect(await configure('agnet', 'greeting')).toEqual([
      ['extension-service-agnet', `${unknown('agnet')}: rename it to "agent"`, 'extension services of this image: agent, greeting'],
    ])
    expect(await configure('agent', 'greeting')).toEqual([])
  })
})

test.each([
  ['a name that leads elsewhere', 'name: a/../b\nenvironment: [A=b]', 'name: "a/../b": must be lower-case letters'],
  ['a relative path', 'name: a\nconfigFiles: [{content: x, mountPath: y}]', 'configFiles[0].mountPath: "y": must be an absolute path'],
])('%s is refused', (_, text, message) => {
  const { errors } = ConfigContainer.parse(`apiVersion: v1alpha1\nkind: ExtensionServiceConfig\n${text}\n`).validate('metal')
  expect(errors.map(formatIssue).join('\n')).toContain(message)
})
