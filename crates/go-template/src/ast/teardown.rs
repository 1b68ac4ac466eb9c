//! Drops trees without recursion: ten thousand nested parentheses are a template, and its end must not overflow the stack.
//!
//! A list or pipeline that goes takes the lists and pipelines below it apart, outermost first. Each of those is then dropped
//! with nothing left in it.

use super::{Command, List, Node, Operand, Pipe};

impl Drop for List {
    fn drop(&mut self) {
        let mut rest = Rest::default();
        rest.take_list(self);
        rest.run();
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let mut rest = Rest::default();
        rest.take_pipe(self);
        rest.run();
    }
}

/// Nodes taken out of their parent and not yet dropped. Stays unallocated where nothing nests.
#[derive(Default)]
struct Rest {
    lists: Vec<Box<[Node]>>,
    pipes: Vec<Box<[Command]>>,
}

impl Rest {
    fn run(&mut self) {
        loop {
            if let Some(mut nodes) = self.lists.pop() {
                self.take_apart(&mut nodes);
            } else if let Some(mut commands) = self.pipes.pop() {
                self.take_commands_apart(&mut commands);
            } else {
                return;
            }
        }
    }

    fn take_apart(&mut self, nodes: &mut [Node]) {
        for node in nodes {
            if let Node::If(branch) | Node::Range(branch) | Node::With(branch) = node {
                self.take_list(&mut branch.list);
                if let Some(list) = &mut branch.else_list {
                    self.take_list(list);
                }
            }
        }
    }

    fn take_commands_apart(&mut self, commands: &mut [Command]) {
        for operand in commands.iter_mut().flat_map(|command| &mut command.operands) {
            match operand {
                Operand::Pipe(pipe) => self.take_pipe(pipe),
                Operand::Chain(chain) => {
                    if let Operand::Pipe(pipe) = &mut chain.operand {
                        self.take_pipe(pipe);
                    }
                }
                _ => {}
            }
        }
    }

    fn take_list(&mut self, list: &mut List) {
        if list
            .nodes
            .iter()
            .any(|node| matches!(node, Node::If(_) | Node::Range(_) | Node::With(_)))
        {
            self.lists.push(std::mem::take(&mut list.nodes));
        }
    }

    fn take_pipe(&mut self, pipe: &mut Pipe) {
        let nests = |operand: &Operand| matches!(operand, Operand::Pipe(_) | Operand::Chain(_));
        if pipe
            .commands
            .iter()
            .any(|command| command.operands.iter().any(nests))
        {
            self.pipes.push(std::mem::take(&mut pipe.commands));
        }
    }
}
