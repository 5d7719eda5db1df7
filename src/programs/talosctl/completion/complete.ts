/**
 * What may come next on a command line, for the shells' completion: names from the same declarations that parse it,
 * values from the cluster where a declaration provides them.
 */

import type { Command, Option } from 'commander'
import { Cluster } from '../cluster.ts'
import { commands } from '../command-table.ts'
import type { Io } from '../io.ts'
import { talosconfigPaths } from '../talosconfig/path.ts'
import { readTalosconfig } from '../talosconfig/talosconfig.ts'
import { build, find, globalOptions } from '../talosctl.ts'
import { LiveArgument } from './live-argument.ts'
import { nodes } from './suggestions.ts'

/** One proposal, with a few words about it. */
interface Proposal {
  readonly value: string
  readonly about?: string
}

/** Proposals for the last of the words, one a line with a tab before the explanation. */
export async function complete(io: Io, words: readonly string[]): Promise<string> {
  const word = words.at(-1) ?? ''
  const proposals = await propose(io, words.slice(0, -1), word).catch(() => [])
  return proposals
    .filter(({ value }) => value.startsWith(word))
    .map(({ value, about }) => `${value}${about ? `\t${about}` : ''}\n`)
    .join('')
}

async function propose(io: Io, before: readonly string[], word: string): Promise<Proposal[]> {
  const state = await parse(io, before)
  const { command, options, flags, pending } = state
  if (pending) return optionValues(io, state.cluster, pending, word)
  const [, name, value] = /^(--[^=]+)=(.*)$/s.exec(word) ?? []
  if (name !== undefined && value !== undefined) {
    const option = options.find(({ long }) => long === name)
    if (!option) return []
    return (await optionValues(io, state.cluster, option, value)).map((one) => ({ ...one, value: `${name}=${one.value}` }))
  }
  if (word.startsWith('-'))
    return options.filter(({ hidden }) => !hidden).flatMap(({ long, description }) => (long ? [{ value: long, about: description }] : []))
  if (!command && state.operands.length > 0) return []
  if (!command) {
    return Object.entries(commands)
      .filter(([, { hidden }]) => !hidden)
      .map(([value, { summary }]) => ({ value, about: summary }))
  }
  const below = command.createHelp().visibleCommands(command)
  if (below.length > 0 && state.operands.length === 0) {
    return below.filter((one) => one.name() !== 'help').map((one) => ({ value: one.name(), about: one.summary() || one.description() }))
  }
  const declared = command.registeredArguments
  const argument = declared[state.operands.length] ?? (declared.at(-1)?.variadic ? declared.at(-1) : undefined)
  if (argument?.argChoices) return argument.argChoices.map((value) => ({ value }))
  if (!(argument instanceof LiveArgument)) return []
  return (await argument.suggest(state.cluster, state.operands, flags, word)).toSorted().map((value) => ({ value }))
}

interface State {
  readonly cluster: Cluster
  readonly command?: Command | undefined
  readonly options: readonly Option[]
  readonly operands: readonly string[]
  readonly flags: Record<string, unknown>
  /** The option whose value comes next. */
  readonly pending?: Option | undefined
}

async function parse(io: Io, words: readonly string[]): Promise<State> {
  const cluster = new Cluster(io)
  let command: Command | undefined
  let options: Option[] = globalOptions()
  const operands: string[] = []
  const flags: Record<string, unknown> = {}
  let pending: Option | undefined
  for (const word of words) {
    if (pending) {
      store(flags, pending, word)
      pending = undefined
    } else if (word.startsWith('-')) {
      const [name, ...value] = word.split('=')
      const option = options.find(({ short, long }) => name === short || name === long)
      if (option?.required && value.length === 0) pending = option
      else if (option) store(flags, option, option.required ? value.join('=') : true)
    } else if (!command) {
      const found = find(word)
      if (!found) return { cluster, options: [], operands: [word], flags }
      command = await build(...found, io, cluster)
      options = [...command.options]
      cluster.bind(() => flags)
    } else {
      const below: Command | undefined =
        operands.length === 0 ? command.commands.find((one) => one.name() === word || one.aliases().includes(word)) : undefined
      if (below) {
        command = below
        options = [...options, ...below.options]
      } else operands.push(word)
    }
  }
  return { cluster, command, options, operands, flags, pending }
}

function store(flags: Record<string, unknown>, option: Option, value: unknown): void {
  const key = option.attributeName()
  flags[key] = option.parseArg && typeof value === 'string' ? option.parseArg(value, flags[key]) : value
}

async function optionValues(io: Io, cluster: Cluster, option: Option, word: string): Promise<Proposal[]> {
  if (option.argChoices) return option.argChoices.map((value) => ({ value }))
  const prefix = word.slice(0, word.lastIndexOf(',') + 1)
  if (option.long === '--nodes') return (await nodes(cluster)).map((value) => ({ value: `${prefix}${value}` }))
  if (option.long === '--endpoints') return (await cluster.target()).endpoints.map((value) => ({ value: `${prefix}${value}` }))
  if (option.long !== '--context') return []
  const found = await readTalosconfig(talosconfigPaths(undefined, io.env))
  return Object.keys(found?.config.contexts ?? {}).map((value) => ({ value }))
}
