import { describe, expect, test } from 'bun:test'
import { loadExtensionServices } from '../../../../src/os/runtime/extensions/load.ts'
import { parseEnvironmentFile, parseExtensionService, ServiceSpecError } from '../../../../src/os/runtime/extensions/service-spec.ts'

const agent = `
name: agent
container:
  entrypoint: ./usr/sbin/agent
  args: [--port, 8080]
  environment: [A=1]
  environmentFile: /var/agent.env
  mounts:
    - source: /dev
      destination: /dev
      type: bind
      options: [rbind, rshared, rw]
      uidmappings: [{containerid: 0, hostid: 1000, size: 10}]
  security:
    writeableRootfs: true
    maskedPaths: []
    rootfsPropagation: shared
depends:
  - service: cri
  - path: /run/x
  - network: [addresses, connectivity]
  - time: true
  - configuration: true
restart: untilSuccess
logToConsole: true
future: ignored
`

test('a specification is read as it is', () => {
  expect(parseExtensionService(agent)).toEqual({
    name: 'agent',
    entrypoint: '/usr/sbin/agent',
    args: ['--port', '8080'],
    environment: ['A=1'],
    environmentFile: '/var/agent.env',
    mounts: [
      {
        source: '/dev',
        destination: '/dev',
        type: 'bind',
        options: ['rbind', 'rshared', 'rw'],
        uidMappings: [{ containerID: 0, hostID: 1000, size: 10 }],
      },
    ],
    writeableRootfs: true,
    writeableSysfs: false,
    maskedPaths: [],
    readonlyPaths: undefined,
    rootPropagation: 'shared',
    depends: { services: ['cri'], paths: ['/run/x'], network: ['address', 'connectivity'], time: true, configuration: true },
    restart: 'untilSuccess',
    logToConsole: true,
  })
})

const spec = (more: string, container = '') => `name: a\ncontainer:\n  entrypoint: /a\n${container}restart: always\n${more}`

test.each<[what: string, text: string, message: string]>([
  ['no YAML', '{', 'not YAML'],
  ['nothing', '', 'the specification'],
  ['a name in capitals', spec('').replace('name: a', 'name: A'), 'name must be lower-case letters'],
  ['no program', 'name: a\ncontainer: {}\nrestart: always\n', 'container.entrypoint'],
  ['no policy', 'name: a\ncontainer: {entrypoint: /a}\n', 'restart is required'],
  ['another policy', spec('').replace('always', 'often'), 'restart must be always, never or untilSuccess'],
  ['a variable without a value', spec('', '  environment: [A]\n'), 'container.environment.0 must be NAME=value'],
  ['a relative mount', spec('', '  mounts: [{destination: x}]\n'), 'container.mounts.0.destination must be an absolute path'],
  ['a dependency on nothing', spec('depends: [{}]\n'), 'depends.0 must have exactly one of'],
  ['a dependency on two things', spec('depends: [{time: true, path: /x}]\n'), 'depends.0 must have exactly one of'],
  ['a need that is none', spec('depends: [{network: [internet]}]\n'), 'must be some of addresses'],
])('%s is refused', (_, text, message) => {
  expect(() => parseExtensionService(text)).toThrow(ServiceSpecError)
  expect(() => parseExtensionService(text)).toThrow(message)
})

test('lines of an environment file are variables, others are left out', () => {
  expect(parseEnvironmentFile('A=1\nexport B="two words"\n# C=3\n\nD = \'x # y\' \nE=f # note\nbad line\n')).toEqual([
    'A=1',
    'B=two words',
    'D=x # y',
    'E=f',
  ])
})

describe('the specifications of an image', () => {
  const load = (texts: Record<string, string>) => {
    const warnings: unknown[] = []
    const files = {
      exists: () => Object.keys(texts).length > 0,
      list: () => Object.keys(texts),
      readText: (path: string) => texts[path.slice('/usr/local/etc/containers/'.length)] ?? '',
    }
    const services = loadExtensionServices({ files }, { warn: (_, fields) => warnings.push(fields?.path) })
    return { names: services.map(({ name }) => name), warnings }
  }

  test('none is an image without extensions', () => {
    expect(load({})).toEqual({ names: [], warnings: [] })
  })

  test('a bad one and a second one of a name are logged, the others run', () => {
    const named = (name: string) => spec('').replace('name: a', `name: ${name}`)
    expect(load({ 'c.yaml': named('x'), 'b.yaml': named('x'), 'a.yaml': 'bad', 'd.txt': 'no', 'e.yaml': named('y') })).toEqual({
      names: ['x', 'y'],
      warnings: ['/usr/local/etc/containers/a.yaml', '/usr/local/etc/containers/c.yaml'],
    })
  })
})
