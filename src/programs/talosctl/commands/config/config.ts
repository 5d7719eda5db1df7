import { Command } from 'commander'
import type { Cluster } from '../../cluster.ts'
import { duration, list } from '../../flags.ts'
import type { Io } from '../../io.ts'
import { type OutputFlags, outputOption } from '../../output/output.ts'
import { addContext } from './add.ts'
import { chooseContext, setEndpoints, setNodes } from './choose.ts'
import { listContexts } from './contexts.ts'
import { showInfo } from './info.ts'
import { mergeConfig } from './merge.ts'
import { newConfig } from './new.ts'
import { removeContexts } from './remove.ts'

/** The flags that all of these share. */
export interface ConfigFlags {
  talosconfig?: string
  context?: string
}

/** talosctl config */
export function config(io: Io, cluster: Cluster): Command {
  const group = new Command().description('Show and change the client configuration: contexts, their endpoints, nodes and credentials.')
  const flags = () => group.opts<ConfigFlags>()
  group
    .command('add <context>')
    .summary('Add a context')
    .description('Add a context, with credentials from files if they are given.')
    .option('--ca <file>', 'certificate of the authority')
    .option('--crt <file>', 'client certificate')
    .option('--key <file>', 'private key')
    .action((name: string, files) => addContext(io, flags(), name, files))
  group
    .command('context <context>')
    .alias('use-context')
    .summary('Choose the current context')
    .action((name: string) => chooseContext(io, flags(), name))
  group
    .command('contexts')
    .alias('get-contexts')
    .summary('List the contexts')
    .argument('[ignored...]')
    .addOption(outputOption({ name: 'string', current: 'boolean', endpoints: ['string'], nodes: ['string'] }))
    .action((_: string[], options: OutputFlags) => listContexts(io, flags(), options))
  group
    .command('endpoint <endpoint...>')
    .alias('endpoints')
    .summary('Set the endpoints of the current context')
    .action((endpoints: string[]) => setEndpoints(io, flags(), endpoints))
  group
    .command('node [node...]')
    .alias('nodes')
    .summary('Set the nodes of the current context')
    .action((nodes: string[]) => setNodes(io, flags(), nodes))
  group
    .command('info')
    .summary('Show the current context')
    .option('-o, --output <format>', 'text, json or yaml', 'text')
    .action((options: { output: string }) => showInfo(io, flags(), options))
  group
    .command('merge <from...>')
    .summary('Take in the contexts of another client configuration')
    .description('Take in the contexts of other client configurations. A name that is taken gets a number.')
    .option('--overwrite', 'take the place of contexts that have the same name')
    .action((files: string[], options: { overwrite?: boolean }) => mergeConfig(io, flags(), files, options))
  group
    .command('new [path]')
    .summary('Make a client configuration with other roles')
    .description('Ask a control plane for a new client certificate and write it as a client configuration.')
    .option('--roles <role>', 'roles of the certificate (default: os:admin)', list())
    .option('--crt-ttl <duration>', 'how long the certificate is valid', duration, duration('8760h'))
    .action((path: string | undefined, options) => newConfig(io, cluster, path ?? 'talosconfig', options))
  group
    .command('remove <context>')
    .summary('Remove contexts')
    .description('Remove the contexts that a name or pattern (with "*") stands for.')
    .option('-y, --noconfirm', 'do not ask')
    .option('--dry-run', 'only say what would go')
    .action((pattern: string, options) => removeContexts(io, flags(), pattern, options))
  return group
}
