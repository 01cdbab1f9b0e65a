//! Attention on graphs: a node attends to the nodes that have an edge to it.

mod attention;
mod edges;
mod mean;
mod network;
mod softmax;

pub use attention::{GraphAttended, GraphAttention, GraphAttentionConfig, GraphVersion};
pub use edges::Graph;
pub use mean::GraphMean;
pub use network::{GraphAttentionNetwork, GraphLayer, GraphNetworkConfig};
pub use softmax::segment_softmax;
