import { Command } from 'commander'
import { array, integer, list } from '../../flags.ts'
import type { Io } from '../../io.ts'
import { genCa } from './ca.ts'
import { genConfig } from './config.ts'
import { genCrt } from './crt.ts'
import { genCsr } from './csr.ts'
import { genKey, genKeypair } from './key.ts'
import { genSecrets } from './secrets.ts'
import { secureboot } from './secureboot.ts'

/** The flag that all of these share. */
export interface GenFlags {
  force?: boolean
}

const hours = integer(1, 24 * 365 * 100)

/** talosctl gen */
export function gen(io: Io): Command {
  const group = new Command()
    .description('Make secrets, configurations, keys and certificates.')
    .option('-f, --force', 'overwrite files that are there')
  const flags = () => group.opts<GenFlags>()
  group
    .command('ca')
    .summary('Make a certificate authority')
    .requiredOption('--organization <name>', 'organization in the subject; the files are called like it')
    .option('--hours <hours>', 'how long it is valid', hours, 87600)
    .option('--rsa', 'an RSA key instead of Ed25519')
    .action((options) => genCa(io, flags(), options))
  addConfigFlags(
    group
      .command('config <cluster-name> <cluster-endpoint>')
      .summary('Make the configurations of a cluster')
      .description('Make the configurations of a cluster: for control planes, for workers, and for the client.'),
  ).action((name: string, endpoint: string, options) => genConfig(io, flags(), name, endpoint, options))
  group
    .command('crt')
    .summary('Sign a certificate request')
    .requiredOption('--ca <path>', 'authority, without ".crt" and ".key"')
    .requiredOption('--csr <file>', 'the request')
    .requiredOption('--name <name>', 'what the file is called, without ".crt"')
    .option('--hours <hours>', 'how long it is valid', hours, 24)
    .action((options) => genCrt(io, flags(), options))
  group
    .command('csr')
    .summary('Make a certificate request')
    .requiredOption('--key <file>', 'the private key')
    .requiredOption('--ip <address>', 'address of the machine')
    .option('--roles <role>', 'roles of the certificate (default: os:admin)', list())
    .action((options) => genCsr(io, flags(), options))
  group
    .command('key')
    .summary('Make an Ed25519 private key')
    .requiredOption('--name <name>', 'what the file is called, without ".key"')
    .action((options) => genKey(io, flags(), options))
  group
    .command('keypair')
    .summary('Make an Ed25519 key and a certificate signed by itself')
    .requiredOption('--organization <name>', 'organization in the subject; the files are called like it')
    .option('--ip <address>', 'address in the certificate')
    .action((options) => genKeypair(io, flags(), options))
  group
    .command('secrets')
    .summary('Make the secrets of a cluster')
    .option('-o, --output-file <file>', 'where to write them, "-" for standard output', 'secrets.yaml')
    .option('--from-controlplane-config <file>', 'take them from the configuration of a control plane')
    .option('-p, --from-kubernetes-pki <folder>', "take Kubernetes' own from a folder such as /etc/kubernetes/pki")
    .option('-t, --kubernetes-bootstrap-token <token>', 'bootstrap token to use with --from-kubernetes-pki')
    .option('--talos-version <version>', 'version of the machines they are for')
    .action((options) => genSecrets(io, flags(), options))
  group.addCommand(secureboot(io, flags))
  return group
}

/** The flags of `gen config`, which `machineconfig gen` takes too. */
export function addConfigFlags(command: Command): Command {
  return command
    .option('-o, --output <path>', 'folder to write to, file when there is one output type, "-" for standard output')
    .option('--output-dir <path>', 'folder to write to (deprecated: use --output)')
    .option('-t, --output-types <type>', 'controlplane, worker, talosconfig (default: all)', list())
    .option('--with-secrets <file>', 'use these secrets instead of fresh ones')
    .option('--additional-sans <name>', 'more names and addresses for the certificates', list())
    .option('--config-patch <patch>', 'patch for all machines, "@file" or the text itself', array())
    .option('--config-patch-control-plane <patch>', 'patch for control planes', array())
    .option('--config-patch-worker <patch>', 'patch for workers', array())
    .option('--dns-domain <domain>', 'domain of the names inside the cluster', 'cluster.local')
    .option('--install-disk <disk>', 'disk to install on', '/dev/sda')
    .option('--install-image <image>', 'image to install from')
    .option('--kubernetes-version <version>', 'version of Kubernetes')
    .option('--registry-mirror <registry=url>', 'URL to ask before a registry', list())
    .option('--talos-version <version>', 'version of the machines it is for')
    .option('--version <version>', 'version of the format', 'v1alpha1')
    .option('--with-cluster-discovery', 'let the nodes find each other', true)
    .option('--no-with-cluster-discovery', 'do not let the nodes find each other')
    .option('--with-docs', 'say in comments what the keys are for', true)
    .option('--no-with-docs', 'no comments about keys')
    .option('--with-examples', 'show further settings in comments', true)
    .option('--no-with-examples', 'no examples')
    .option('--with-kubespan', 'connect the nodes by an encrypted mesh')
}
