import { type Controller, defineController, exclusive, strong, weak } from '../../../../cosi/controller.ts'
import type { SpecOf } from '../../../../cosi/resource.ts'
import { CelError } from '../../../../document/cel/error.ts'
import { declared, findAll } from '../../../config/public.ts'
import { MachineConfig } from '../../../config/resources/machine-config.ts'
import type { Kernel } from '../../../kernel.ts'
import { LinkAliasConfig } from '../../documents/link.ts'
import { linkCondition } from '../../documents/link-expression.ts'
import { isPhysical } from '../../link/names.ts'
import { linkValues } from '../../link/values.ts'
import { LinkStatus } from '../../resources/link.ts'
import { LinkAliasSpec } from '../../resources/link-alias-spec.ts'

/** Declares link aliases: `uplink` for the only link its expression matches, `net%d` for all matches in order. */
export const configLinkAliases: Controller = defineController({
  name: 'network.LinkAliasConfigController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }), links: weak(LinkStatus) },
  outputs: { alias: exclusive(LinkAliasSpec) },
  reconcile({ config, links, alias, log }) {
    const physical = links
      .list()
      .filter(({ spec }) => isPhysical(spec))
      .sort((a, b) => a.spec.index - b.spec.index)
    const named = new Set<string>()
    for (const document of findAll(declared(config.get('v1alpha1')), LinkAliasConfig)) {
      const { name, selector } = document
      if (!name) continue
      const picked = pick(selector?.match ?? '', physical, (reason) => log.warn('link alias matches no link', { alias: name, reason }))
        .filter(({ metadata }) => !named.has(metadata.id)) // the first document that matches a link names it
        .map(({ metadata }) => metadata.id)
      const many = name.endsWith('%d')
      if (!many && picked.length > 1) {
        log.warn('link alias matches several links, expected one', { alias: name, links: picked.join(', ') })
        continue
      }
      picked.forEach((id, index) => {
        named.add(id)
        alias.put(id, { alias: many ? `${name.slice(0, -2)}${index}` : name })
      })
    }
  },
})

type PhysicalLink = { metadata: { id: string }; spec: SpecOf<typeof LinkStatus> }

function pick<T extends PhysicalLink>(expression: string, physical: readonly T[], complain: (reason: string) => void): T[] {
  try {
    const picks = linkCondition(expression)
    return physical.filter(({ spec }) => picks({ link: linkValues(spec) }))
  } catch (error) {
    if (!(error instanceof CelError)) throw error
    complain(error.message)
    return []
  }
}

/** Sets link aliases, and removes those this controller set earlier. */
export const applyLinkAliases = ({ net }: Pick<Kernel, 'net'>): Controller => {
  const added = new Map<string, string>()
  return defineController({
    name: 'network.LinkAliasSpecController',
    inputs: { specs: strong(LinkAliasSpec), links: weak(LinkStatus) },
    outputs: {},
    reconcile({ specs, log }) {
      using network = net.openNetwork()
      const present = new Map(network.links().map((link) => [link.name, link]))
      const desired = new Map(specs.list().map(({ metadata, spec }) => [metadata.id, spec.alias]))
      for (const [name, alias] of added) {
        if (desired.has(name)) continue
        if (present.get(name)?.alias === alias) network.setLink(name, { alias: '' })
        added.delete(name)
      }
      for (const [name, alias] of desired) {
        if (!present.has(name) || present.get(name)?.alias === alias) continue
        log.info('naming link', { link: name, alias })
        network.setLink(name, { alias })
        added.set(name, alias)
      }
    },
  })
}
